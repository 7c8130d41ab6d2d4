/* Extended Kalman filter: angles of the joints are measured, angles and rates are estimated.
 *
 * modurob.estimation.Ekf with the integrator rk4, variances for Q and R, and all joints measured.
 */
#ifndef MODUROB_EKF_H
#define MODUROB_EKF_H

#include "modurob/dynamics.h"

#define MR_EKF_SIZE (2 * MR_MAX_JOINTS)

typedef struct mr_ekf {
  mr_real q[MR_MAX_JOINTS], v[MR_MAX_JOINTS]; /* estimate */
  mr_real P[MR_EKF_SIZE * MR_EKF_SIZE];       /* its covariance, 2 n x 2 n, row by row */
  mr_real Q[MR_EKF_SIZE];                     /* variances that a sample adds, of q, then of v */
  mr_real R[MR_MAX_JOINTS];                   /* variances of the measurements */
  mr_real dt;                                 /* of a sample [s] */
  int substeps;                               /* steps of Runge and Kutta in a sample */
} mr_ekf;

/* Memory of one call; its content is lost between calls. */
typedef struct mr_ekf_work {
  mr_work dynamics;
  mr_real A[MR_EKF_SIZE * MR_EKF_SIZE], K[MR_EKF_SIZE * MR_EKF_SIZE],
      S[MR_EKF_SIZE * MR_EKF_SIZE], rates[MR_EKF_SIZE * MR_EKF_SIZE];
  mr_real D[3 * MR_MAX_JOINTS * MR_MAX_JOINTS];
} mr_ekf_work;

/* At rest at q = 0 with the default variances. */
void mr_ekf_init(mr_ekf *ekf, const mr_table *table, mr_real dt);

/* One sample ahead under torques that are held. */
mr_status mr_ekf_predict(mr_ekf *ekf, const mr_table *table, mr_ekf_work *work, const mr_real *tau);

/* Use measured angles; NaN where nothing came in. */
mr_status mr_ekf_correct(mr_ekf *ekf, const mr_table *table, mr_ekf_work *work, const mr_real *y);

#endif

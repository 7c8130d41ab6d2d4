/* Control laws: computed torque, PD with gravity compensation, PID.
 *
 * The laws of modurob.control for robots whose joints all have a motor: build the table with
 * options.stiff = 1 where joints are elastic. Gains are one number for each joint.
 */
#ifndef MODUROB_CONTROL_H
#define MODUROB_CONTROL_H

#include "modurob/dynamics.h"

typedef struct mr_reference {
  mr_real q[MR_MAX_JOINTS], v[MR_MAX_JOINTS], a[MR_MAX_JOINTS];
} mr_reference;

/* Inverse dynamics for a torque that is held during a sample. */
typedef struct mr_linearization {
  mr_real pose_ahead;                                   /* [s] */
  mr_real drag_ahead[MR_MAX_JOINTS], dry_ahead[MR_MAX_JOINTS]; /* [s] */
} mr_linearization;

/* tau = M (a_d + k0 e + k1 e') + C v + N + friction */
typedef struct mr_computed_torque {
  mr_real k0[MR_MAX_JOINTS], k1[MR_MAX_JOINTS]; /* [1/s^2, 1/s] */
  mr_linearization inverse;
} mr_computed_torque;

/* tau = kp e + kd e' + N(q), and friction of the motion to come */
typedef struct mr_pd_gravity {
  mr_real kp[MR_MAX_JOINTS], kd[MR_MAX_JOINTS]; /* [N m/rad, N m s/rad; N/m, N s/m] */
} mr_pd_gravity;

/* u = kp e + i + kd r, i' = ki e, r the filtered rate of e. */
typedef struct mr_pid {
  mr_real kp[MR_MAX_JOINTS], ki[MR_MAX_JOINTS], kd[MR_MAX_JOINTS];
  mr_real share[MR_MAX_JOINTS];          /* part of kp that jumps of the reference do not see */
  mr_real integral_limit[MR_MAX_JOINTS]; /* 0 for none */
  mr_real filter_time;                   /* of the low-pass on the rate, 0 for none [s] */
  mr_real integral[MR_MAX_JOINTS], rate[MR_MAX_JOINTS], before[MR_MAX_JOINTS]; /* memory */
  mr_reference last;
  uint8_t has_run;
} mr_pid;

/* Prepare for samples of sample_time; 0 for commands without a clock. [s] */
void mr_linearization_init(mr_linearization *inverse, const mr_table *table, mr_work *work,
                           mr_real sample_time);

/* Torque for accelerations of the joints. */
mr_status mr_linearized(const mr_linearization *inverse, const mr_table *table, mr_work *work,
                        const mr_real *q, const mr_real *v, const mr_real *a, mr_real *tau);

mr_status mr_computed_torque_command(const mr_computed_torque *law, const mr_table *table,
                                     mr_work *work, const mr_real *q, const mr_real *v,
                                     const mr_reference *aim, mr_real *tau);

mr_status mr_pd_gravity_command(const mr_pd_gravity *law, const mr_table *table, mr_work *work,
                                const mr_real *q, const mr_real *v, const mr_reference *aim,
                                mr_real *tau);

/* Output of the PIDs `dt` after the call before. */
void mr_pid_output(mr_pid *pid, int joints, mr_real dt, const mr_real *q, const mr_real *v,
                   const mr_reference *aim, mr_real *u);

/* Limit torques to +-limit, and take back what the integral gained where a motor is at its limit. */
void mr_pid_limit(mr_pid *pid, int joints, const mr_real *limit, mr_real *tau);

#endif

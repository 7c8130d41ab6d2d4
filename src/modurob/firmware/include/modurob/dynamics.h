/* Kinematics and dynamics of a table: a loop over the generated kernels.
 *
 * q, v, a and tau have one number for each joint of the table, in its order. [rad, m; N m, N]
 */
#ifndef MODUROB_DYNAMICS_H
#define MODUROB_DYNAMICS_H

#include "modurob/kernels.h"
#include "modurob/table.h"

/* Memory of one evaluation; its content is lost between calls. */
typedef struct mr_work {
  mr_real records[MR_MAX_JOINTS][5]; /* q, cos q, sin q, v, and the third input */
  mr_real states[MR_MAX_JOINTS + 1][MR_STATE_SIZE];
  mr_real carried[MR_CARRIED_SIZE];
} mr_work;

typedef void (*mr_kernel)(const mr_real *row, mr_real *self, mr_real *parent, mr_real *record,
                          mr_real *out, int stride);

/* An algorithm: kernels by the pattern of a joint, and those that are called once. */
typedef struct mr_passes {
  int state, matrices, friction_first;
  mr_kernel outward[8], inward[8], back[8], carry[8];
  mr_kernel base, begin, turn, friction, output;
  void (*pair)(const mr_real *self, const mr_real *parent, const mr_real *carried, mr_real *ij,
               mr_real *ji, int stride);
  void (*lift)(const mr_real *self, mr_real *out);
} mr_passes;

extern const mr_passes mr_inverse_dynamics_passes, mr_forward_dynamics_passes,
    mr_mass_matrix_passes, mr_inverse_dynamics_derivatives_passes, mr_forward_kinematics_passes,
    mr_center_of_mass_passes;

/* Forces for an acceleration, gravity, friction and springs included; v and a may be NULL for zero. */
void mr_inverse_dynamics(const mr_table *table, mr_work *work, const mr_real *q, const mr_real *v,
                         const mr_real *a, mr_real *tau);

/* Acceleration under forces. */
void mr_forward_dynamics(const mr_table *table, mr_work *work, const mr_real *q, const mr_real *v,
                         const mr_real *tau, mr_real *a);

/* M, row by row. */
void mr_mass_matrix(const mr_table *table, mr_work *work, const mr_real *q, mr_real *M);

/* Derivatives of the forces by q, v and a: three matrices, row by row. */
void mr_inverse_dynamics_derivatives(const mr_table *table, mr_work *work, const mr_real *q,
                                     const mr_real *v, const mr_real *a, mr_real *D);

/* Poses of all parts but the world in the world, R with p beside it, three rows of four numbers
 * each, in the order of table->parts; needs a table that is `placed`. */
void mr_forward_kinematics(const mr_table *table, mr_work *work, const mr_real *q, mr_real *T);

/* Center of mass of the whole robot in the world; needs a table that is `placed`. [m] */
void mr_center_of_mass(const mr_table *table, mr_work *work, const mr_real *q, mr_real c[3]);

#endif

#include "modurob/control.h"

#include <string.h>

#include "modurob/pose.h"

#define SLIP MR_C(1e-3)            /* velocity that rounds off dry friction [rad/s, m/s] */
#define LEAST_STIFFNESS MR_C(1e-4) /* below, the share of a sample is 1/2 to rounding */

static mr_real dry_friction(mr_real coulomb, mr_real v)
{
  return coulomb * v / mr_sqrt(v * v + SLIP * SLIP);
}

/* exp(-x) for x >= 0: a series after halving x until it is small. */
static mr_real decay(mr_real x)
{
  mr_real sum = 1, term = 1;
  int halvings = 0;
  if (x > 80) {
    return 0;
  }
  while (x > MR_C(0.125)) {
    x /= 2;
    halvings++;
  }
  for (int k = 1; k < 9; k++) {
    term *= -x / (mr_real)k;
    sum += term;
  }
  for (; halvings > 0; halvings--) {
    sum *= sum;
  }
  return sum;
}

/* 1 / (1 - exp(-x)) - 1 / x: the part of a sample after which stiff friction has its mean. */
static mr_real mean_time(mr_real x)
{
  if (x < MR_C(0.5)) { /* Bernoulli's numbers; the difference would cost the digits */
    const mr_real z = x * x;
    return MR_C(0.5) +
           x / 12 *
               (1 - z / 60 * (1 - z / 42 * (1 - z / 40 * (1 - z * 10 / 396 * (1 - z * 691 / 27300)))));
  }
  return 1 / (1 - decay(x)) - 1 / x;
}

void mr_linearization_init(mr_linearization *inverse, const mr_table *table, mr_work *work,
                           mr_real sample_time)
{
  const mr_real rest[MR_MAX_JOINTS] = {0};
  mr_real M[MR_MAX_JOINTS * MR_MAX_JOINTS];
  const int n = table->joint_count;
  memset(inverse, 0, sizeof *inverse);
  inverse->pose_ahead = sample_time / 2;
  if (!(sample_time > 0)) {
    return;
  }
  mr_mass_matrix(table, work, rest, M);
  for (int k = 0; k < n; k++) {
    const mr_row *row = &table->rows[k + 1];
    const mr_real slopes[2] = {row->viscous, row->coulomb / SLIP};
    for (int j = 0; j < 2; j++) {
      const mr_real x = slopes[j] * sample_time / M[k * n + k];
      mr_real *ahead = j ? inverse->dry_ahead : inverse->drag_ahead;
      ahead[k] = slopes[j] > 0 ? sample_time * mean_time(x > LEAST_STIFFNESS ? x : LEAST_STIFFNESS)
                               : 0;
    }
  }
}

mr_status mr_linearized(const mr_linearization *inverse, const mr_table *table, mr_work *work,
                        const mr_real *q, const mr_real *v, const mr_real *a, mr_real *tau)
{
  mr_real later[MR_MAX_JOINTS];
  for (int k = 0; k < table->joint_count; k++) {
    later[k] = q[k] + inverse->pose_ahead * v[k];
    if (table->rows[k + 1].stiffness > 0) {
      return MR_BAD_ARGUMENT; /* a spring has no motor */
    }
  }
  mr_inverse_dynamics(table, work, later, v, a, tau);
  for (int k = 0; k < table->joint_count; k++) {
    const mr_row *row = &table->rows[k + 1];
    if (row->viscous > 0 || row->coulomb > 0) { /* growth of friction until its mean */
      tau[k] += row->viscous * inverse->drag_ahead[k] * a[k] +
                dry_friction(row->coulomb, v[k] + inverse->dry_ahead[k] * a[k]) -
                dry_friction(row->coulomb, v[k]);
    }
  }
  return MR_OK;
}

mr_status mr_computed_torque_command(const mr_computed_torque *law, const mr_table *table,
                                     mr_work *work, const mr_real *q, const mr_real *v,
                                     const mr_reference *aim, mr_real *tau)
{
  mr_real a[MR_MAX_JOINTS];
  for (int k = 0; k < table->joint_count; k++) {
    a[k] = aim->a[k] + law->k0[k] * (aim->q[k] - q[k]) + law->k1[k] * (aim->v[k] - v[k]);
  }
  return mr_linearized(&law->inverse, table, work, q, v, a, tau);
}

mr_status mr_pd_gravity_command(const mr_pd_gravity *law, const mr_table *table, mr_work *work,
                                const mr_real *q, const mr_real *v, const mr_reference *aim,
                                mr_real *tau)
{
  mr_inverse_dynamics(table, work, q, NULL, NULL, tau);
  for (int k = 0; k < table->joint_count; k++) {
    const mr_row *row = &table->rows[k + 1];
    const mr_real e = aim->q[k] - q[k], rate = law->kp[k] / (law->kd[k] + row->viscous);
    if (row->stiffness > 0) {
      return MR_BAD_ARGUMENT;
    }
    tau[k] += law->kp[k] * e + law->kd[k] * (aim->v[k] - v[k]) + row->viscous * aim->v[k];
    if (row->coulomb > 0) {
      tau[k] += dry_friction(row->coulomb, aim->v[k] + rate * e);
    }
  }
  return MR_OK;
}

void mr_pid_output(mr_pid *pid, int joints, mr_real dt, const mr_real *q, const mr_real *v,
                   const mr_reference *aim, mr_real *u)
{
  dt = pid->has_run && dt > 0 ? dt : 0;
  for (int k = 0; k < joints; k++) {
    const mr_real e = aim->q[k] - q[k], rate = aim->v[k] - v[k], most = pid->integral_limit[k];
    mr_real jump = e; /* until the first reference, it was where the joint is */
    if (pid->has_run) {
      jump = aim->q[k] - pid->last.q[k] - dt / 2 * (aim->v[k] + pid->last.v[k]) +
             dt * dt / 12 * (aim->a[k] - pid->last.a[k]);
    }
    if (!pid->has_run || !(pid->filter_time > 0)) {
      pid->rate[k] = rate;
    } else if (dt > 0) { /* implicit Euler of the low-pass: stable for every dt */
      pid->rate[k] += dt / (pid->filter_time + dt) * (rate - pid->rate[k]);
    }
    pid->before[k] = pid->integral[k] - pid->share[k] * jump;
    pid->integral[k] = pid->before[k] + pid->ki[k] * (dt * e);
    if (most > 0) {
      pid->integral[k] = pid->integral[k] > most ? most : pid->integral[k];
      pid->integral[k] = pid->integral[k] < -most ? -most : pid->integral[k];
    }
    u[k] = pid->kp[k] * e + pid->integral[k] + pid->kd[k] * pid->rate[k];
  }
  pid->last = *aim;
  pid->has_run = 1;
}

void mr_pid_limit(mr_pid *pid, int joints, const mr_real *limit, mr_real *tau)
{
  for (int k = 0; k < joints; k++) {
    const mr_real growth = pid->integral[k] - pid->before[k];
    if (mr_abs(tau[k]) > limit[k]) {
      if (tau[k] > 0 ? growth > 0 : growth < 0) {
        pid->integral[k] = pid->before[k];
      }
      tau[k] = tau[k] > 0 ? limit[k] : -limit[k];
    }
  }
}

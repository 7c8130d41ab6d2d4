/* All joints together move the center of mass: each takes the share that costs the least motion, and
 * holds its load. */
#include "modurob/mass.h"

#include <string.h>

#define AT_LIMIT 1e-3 /* [rad, m] from a limit at which a joint that moves towards it is stuck */

void mr_balance_start(mr_balance *law, double rate, double gravity) {
  memset(law, 0, sizeof *law);
  law->rate = rate;
  law->gravity = gravity;
  law->braking = 0.5;
  law->damping = 1e-3;
}

void mr_balance_decide(mr_balance *law, const mr_mass_agent *agent, const double target[2]) {
  const mr_mass_update *whole = &agent->whole;
  double total = whole->mass[3][3], error[2], pull[2], xx, xy, yy, floor, determinant;
  if (!agent->own.has_pose) { /* without the world's frame a joint goes on with its load */
    memset(law->share, 0, sizeof law->share);
    return;
  }
  xx = whole->sums[0] / (total * total);
  xy = whole->sums[1] / (total * total);
  yy = whole->sums[2] / (total * total);
  floor = law->damping * (xx + yy) + 1e-12; /* directions that the joints do not reach */
  xx += floor;
  yy += floor;
  for (int i = 0; i < 2; i++) {
    double center = agent->own.pose[i][3], speed = whole->sums[3 + i] / total;
    for (int k = 0; k < 3; k++) center += agent->own.pose[i][k] * (whole->mass[k][3] / total);
    error[i] = target[i] - center - law->braking / law->rate * speed;
  }
  determinant = xx * yy - xy * xy;
  pull[0] = (yy * error[0] - xy * error[1]) / determinant;
  pull[1] = (xx * error[1] - xy * error[0]) / determinant;
  for (uint8_t k = 0; k < agent->posture.joints; k++) {
    double inertia = agent->inertia[k] > 1e-9 ? agent->inertia[k] : 1e-9;
    const double *moment = agent->moment[k];
    law->share[k] = (moment[0] * pull[0] + moment[1] * pull[1]) / total / inertia;
    law->inertia[k] = agent->inertia[k];
    law->load[k] = law->gravity * moment[2];
  }
}

bool mr_balance_is_free(const mr_balance *law, uint8_t joint, const mr_balance_joint *here) {
  return !(here->q >= here->upper - AT_LIMIT && law->share[joint] > 0) &&
         !(here->q <= here->lower + AT_LIMIT && law->share[joint] < 0);
}

double mr_balance_torque(const mr_balance *law, uint8_t joint, const mr_balance_joint *here) {
  double share = mr_balance_is_free(law, joint, here) ? law->share[joint] : 0;
  double pull = law->rate * law->rate * share - 2 * law->rate * here->v;
  return law->load[joint] + law->inertia[joint] * pull + here->friction * here->v;
}

/* Motions of the robot on the bus: the rules of modurob/distributed/bus/operation.py for goto, hold and
 * relax. A motion waits while a module is silent or its readings are old, and goes on from where the
 * joints are when the body has changed. */
#include "modurob/coordinator.h"

#include <string.h>

#include "bus_links.h"

#define APPROACH_S 0.5      /* to a motion from where the joints are */
#define NEAR 1e-6           /* [rad, m] of the beginning of a motion: no approach is needed */
#define SHORTEST_S 1e-6     /* of goto */
#define LONGEST_S 1e6
#define FASTEST 1e6         /* [rad/s, m/s] */
#define CHECKED_INSTANTS 200 /* of a motion, against the joint limits before it begins */

/* -- polynomials of fifth order ---------------------------------------------------------------------- */

/* Coefficients between two states (q, v, a) that lie so many seconds apart; u from 0 to 1. */
static void join(double seconds, const double start[3], const double end[3], double c[6]) {
  const double c1 = seconds * start[1], c2 = 0.5 * seconds * seconds * start[2];
  const double e0 = end[0] - start[0] - c1 - c2, e1 = seconds * end[1] - c1 - 2 * c2;
  const double e2 = seconds * seconds * end[2] - 2 * c2;
  c[0] = start[0];
  c[1] = c1;
  c[2] = c2;
  c[3] = 10 * e0 - 4 * e1 + 0.5 * e2;
  c[4] = -15 * e0 + 7 * e1 - e2;
  c[5] = 6 * e0 - 3 * e1 + 0.5 * e2;
}

/* q, v and a at a time; at rest before and after. */
static void evaluate(const double c[6], double seconds, double t, double state[3]) {
  const double u = t < 0 ? 0 : t > seconds ? 1 : t / seconds;
  const bool is_inside = t >= 0 && t <= seconds;
  state[0] = c[0] + u * (c[1] + u * (c[2] + u * (c[3] + u * (c[4] + u * c[5]))));
  state[1] = c[1] + u * (2 * c[2] + u * (3 * c[3] + u * (4 * c[4] + u * 5 * c[5])));
  state[2] = 2 * c[2] + u * (6 * c[3] + u * (12 * c[4] + u * 20 * c[5]));
  state[1] = is_inside ? state[1] / seconds : 0;
  state[2] = is_inside ? state[2] / (seconds * seconds) : 0;
}

/* -- joints of the table ----------------------------------------------------------------------------- */

/* The module of a joint of the table, and the joint's place among those of it that move. */
static mr_robot_module *owner(mr_bus_robot *robot, uint8_t at, uint8_t *place) {
  mr_robot_module *module = &robot->modules[robot->table.parts[robot->table.moved[at]].module];
  for (*place = 0; module->joints[*place] != at;) ++*place;
  return module;
}

/* The wanted state of a joint as it is now. */
static void aim_of(mr_bus_robot *robot, uint8_t at, double state[3]) {
  const mr_bus_motion *motion = &robot->motion;
  uint8_t place;
  const mr_robot_module *module = owner(robot, at, &place);
  state[0] = module->has_set_point[place] ? module->set_point[place] : module->q[place];
  state[1] = state[2] = 0;
  if (motion->is_on && motion->has_path) memcpy(state, motion->reached[at], 3 * sizeof *state);
}

/* From now on the joints are held where they are wanted now. */
static void leave_path(mr_bus_robot *robot) {
  for (uint8_t at = 0; at < robot->table.joint_count; at++) {
    uint8_t place;
    mr_robot_module *module = owner(robot, at, &place);
    if (robot->motion.has_path) module->set_point[place] = robot->motion.reached[at][0];
  }
  robot->motion.has_path = false;
}

static void end(mr_bus_robot *robot, bool is_lost) {
  if (robot->motion.is_on) leave_path(robot);
  robot->motion.is_on = robot->motion.waits = false;
  robot->motion.is_lost = is_lost;
}

static bool is_measured(const mr_bus_robot *robot) {
  if (!robot->has_model || !robot->has_law) return false;
  for (uint8_t k = 0; k < robot->module_count; k++)
    if (robot->modules[k].joint_count && !robot->modules[k].is_measured) return false;
  return true;
}

/* -- the path ---------------------------------------------------------------------------------------- */

/* Where the motion wants a joint at a time of its own; one that it does not know stays. */
static void along(const mr_bus_motion *motion, uint8_t at, double t, double state[3]) {
  if (motion->along[at] != MR_NONE) {
    evaluate(motion->joints[motion->along[at]].c, motion->duration, t, state);
    return;
  }
  state[0] = motion->stays[at];
  state[1] = state[2] = 0;
}

static uint8_t find_joint(const mr_bus_motion *motion, const mr_robot_module *module, uint8_t place) {
  for (uint8_t k = 0; k < motion->count; k++)
    if (motion->joints[k].place == place &&
        memcmp(motion->joints[k].uid, module->address.uid, MR_ID_SIZE) == 0)
      return k;
  return MR_NONE;
}

/* Lay a path from the states `reached` to the motion at its time `done`, and along it. */
static bool begin(mr_bus_robot *robot) {
  mr_bus_motion *motion = &robot->motion;
  const uint8_t n = robot->table.joint_count;
  bool has_any = false;
  double gap = 0, there[3];
  for (uint8_t at = 0; at < n; at++) {
    uint8_t place;
    const mr_robot_module *module = owner(robot, at, &place);
    motion->along[at] = find_joint(motion, module, place);
    motion->stays[at] = motion->reached[at][0];
    has_any = has_any || motion->along[at] != MR_NONE;
    along(motion, at, motion->done, there);
    for (int k = 0; k < 3; k++) {
      const double distance = there[k] - motion->reached[at][k];
      gap = distance > gap ? distance : -distance > gap ? -distance : gap;
    }
    join(APPROACH_S, motion->reached[at], there, motion->approach[at]);
  }
  if (!has_any) return false;
  motion->lead = gap < NEAR ? 0 : APPROACH_S;
  for (uint8_t at = 0; at < n && motion->lead == 0; at++)
    along(motion, at, motion->done, motion->reached[at]);
  motion->clock = 0;
  motion->from = motion->done;
  motion->has_path = true;
  return true;
}

static void advance(mr_bus_motion *motion, uint8_t joints, double step) {
  const double clock = motion->clock + step;
  for (uint8_t at = 0; at < joints; at++) {
    if (clock < motion->lead) {
      evaluate(motion->approach[at], APPROACH_S, clock, motion->reached[at]);
    } else {
      along(motion, at, motion->from + clock - motion->lead, motion->reached[at]);
    }
  }
  motion->clock = clock;
  if (clock >= motion->lead) motion->done = motion->from + clock - motion->lead;
}

void mr_bus_robot_aim(mr_bus_robot *robot, double now, bool is_hindered, mr_reference *aim) {
  mr_bus_motion *motion = &robot->motion;
  const uint8_t n = robot->table.joint_count;
  const double step = now > motion->ticked ? now - motion->ticked : 0;
  const bool is_first = !(motion->ticked > -INFINITY);
  motion->ticked = now;
  motion->waits = motion->is_on && is_hindered;
  if (motion->waits) {
    leave_path(robot);
  } else if (motion->is_on && !motion->has_path) {
    for (uint8_t at = 0; at < n; at++) { /* at rest where the joints are */
      uint8_t place;
      const mr_robot_module *module = owner(robot, at, &place);
      motion->reached[at][0] = module->is_measured ? module->q[place] : module->set_point[place];
      motion->reached[at][1] = motion->reached[at][2] = 0;
    }
    if (!begin(robot)) end(robot, true);
  } else if (motion->is_on && !is_first) {
    advance(motion, n, step);
  }
  if (motion->is_on && !motion->waits && motion->done >= motion->duration) end(robot, false);
  for (uint8_t at = 0; at < n; at++) {
    double state[3];
    aim_of(robot, at, state);
    aim->q[at] = (mr_real)state[0];
    aim->v[at] = (mr_real)state[1];
    aim->a[at] = (mr_real)state[2];
  }
}

/* -- commands ---------------------------------------------------------------------------------------- */

/* Whether a motion stays within the limits and is not too fast. */
static bool is_possible(mr_bus_robot *robot, const mr_bus_motion *motion) {
  for (uint8_t at = 0; at < motion->count; at++) {
    uint8_t place;
    const mr_robot_module *module = owner(robot, at, &place);
    const mr_kind *kind = mr_robot_kind(&robot->robot, (int)(module - robot->modules));
    for (int k = 0; k <= CHECKED_INSTANTS; k++) {
      double state[3], excess;
      evaluate(motion->joints[at].c, motion->duration, k * motion->duration / CHECKED_INSTANTS,
               state);
      excess = state[0] - mr_within_limits(kind, place, state[0]);
      if (!(excess < NEAR && excess > -NEAR && state[1] < FASTEST && state[1] > -FASTEST))
        return false;
    }
  }
  return true;
}

mr_status mr_bus_robot_goto(mr_bus_robot *robot, const double *q, int count, double seconds) {
  mr_bus_motion *motion = &robot->motion, *next = &robot->next;
  if (!is_measured(robot)) return MR_NOT_READY;
  if (count != robot->table.joint_count || !(seconds >= SHORTEST_S && seconds <= LONGEST_S))
    return MR_BAD_ARGUMENT;
  memset(next, 0, sizeof *next);
  next->is_on = true;
  next->duration = seconds;
  next->ticked = motion->ticked;
  next->count = robot->table.joint_count;
  for (uint8_t at = 0; at < next->count; at++) {
    const double goal[3] = {q[at], 0, 0};
    const mr_robot_module *module = owner(robot, at, &next->joints[at].place);
    if (!(q[at] - q[at] == 0)) return MR_BAD_NUMBER;
    memcpy(next->joints[at].uid, module->address.uid, MR_ID_SIZE);
    aim_of(robot, at, next->reached[at]);
    join(seconds, next->reached[at], goal, next->joints[at].c);
  }
  if (!is_possible(robot, next)) return MR_BEYOND_LIMITS;
  *motion = *next;
  robot->is_relaxed = false;
  begin(robot);
  return MR_OK;
}

mr_status mr_bus_robot_hold(mr_bus_robot *robot) {
  if (!is_measured(robot)) return MR_NOT_READY;
  end(robot, false);
  robot->is_relaxed = false;
  mr_bus_robot_hold_here(robot);
  return MR_OK;
}

mr_status mr_bus_robot_relax(mr_bus_robot *robot) {
  if (!robot->has_model) return MR_NOT_READY;
  end(robot, false);
  robot->is_relaxed = true;
  return MR_OK;
}

mr_bus_mode mr_bus_robot_mode(const mr_bus_robot *robot) {
  const bool has_joints = robot->has_model && robot->table.joint_count > 0;
  if (robot->motion.is_on && (robot->motion.waits || !has_joints)) return MR_WAITS;
  if (robot->is_relaxed) return MR_RELAXES;
  if (robot->motion.is_on) return MR_MOVES;
  return has_joints ? MR_HOLDS : MR_IDLES;
}

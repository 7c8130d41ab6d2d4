/* All joints together move the center of mass: each takes the share that costs the least motion, and
 * holds its load. The target is the nearest place in the support polygon. */
#include "modurob/mass.h"

#include <string.h>

#define SAME_PLANE 0.01  /* [m] of contacts: soft ground gives way, messages lag */
#define SAME_NORMAL 0.05 /* of each entry */
#define SAME_POINT 1e-9  /* [m] of contacts */
#define FLAT 1e-15       /* [m^2] twice the area of a triangle whose corners lie on a line */
#define THIN 1e-12       /* [m^2] twice the area of a polygon that is as good as its border */
#define MOST_CORNERS (2 * MR_MASS_MAX_CONTACTS + 1)
#define HALVINGS 50
#define AT_LIMIT 1e-3 /* [rad, m] from a limit at which a joint that moves towards it is stuck */

/* The center of mass of the robot in the world, from above. [m] */
static void find_center(const mr_mass_agent *agent, double center[2]) {
  const mr_mass_update *whole = &agent->whole;
  for (int i = 0; i < 2; i++) {
    center[i] = agent->own.pose[i][3];
    for (int k = 0; k < 3; k++)
      center[i] += agent->own.pose[i][k] * (whole->mass[k][3] / whole->mass[3][3]);
  }
}

/* -- the support polygon ----------------------------------------------------------------------------- */

typedef struct polygon {
  int count;
  double at[MOST_CORNERS][2]; /* counter-clockwise [m] */
} polygon;

/* Twice the area of a triangle, positive if it is counter-clockwise. */
static double area(const double a[2], const double b[2], const double c[2]) {
  return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
}

/* Convex hull of points in the order of x, then y (Andrew's chains). */
static void find_hull(double (*points)[2], int count, polygon *hull) {
  int size = 0;
  for (int side = 0; side < 2; side++) {
    const int start = size;
    for (int k = 0; k < count; k++) {
      const double *point = points[side ? count - 1 - k : k];
      while (size >= start + 2 && area(hull->at[size - 2], hull->at[size - 1], point) <= FLAT) size--;
      memcpy(hull->at[size++], point, sizeof *points);
    }
    size--; /* the last point begins the other chain */
  }
  hull->count = count == 1 ? 1 : size;
}

/* The part of a polygon at least so far inside the edge from a to b. */
static void cut(polygon *rest, const double a[2], const double b[2], double margin) {
  const polygon before = *rest;
  const double x = b[1] - a[1], y = a[0] - b[0], length = sqrt(x * x + y * y);
  rest->count = 0;
  for (int k = 0; k < before.count; k++) {
    const double *p = before.at[k], *q = before.at[(k + 1) % before.count];
    const double dp = (x * (p[0] - a[0]) + y * (p[1] - a[1])) / length + margin;
    const double dq = (x * (q[0] - a[0]) + y * (q[1] - a[1])) / length + margin;
    if (dp <= 0) memcpy(rest->at[rest->count++], p, sizeof *rest->at);
    if (dp * dq < 0) {
      for (int i = 0; i < 2; i++)
        rest->at[rest->count][i] = p[i] + (q[i] - p[i]) * dp / (dp - dq);
      rest->count++;
    }
  }
}

static void shrink(const polygon *hull, double margin, polygon *rest) {
  *rest = *hull;
  for (int k = 0; k < hull->count && rest->count > 0; k++)
    cut(rest, hull->at[k], hull->at[(k + 1) % hull->count], margin);
}

/* Shrink a polygon, as far as something of it is left. */
static void shrink_at_most(const polygon *hull, double margin, polygon *rest) {
  double low = 0, high = margin;
  shrink(hull, margin, rest);
  if (rest->count) return;
  for (int k = 0; k < HALVINGS; k++) {
    const double middle = (low + high) / 2;
    shrink(hull, middle, rest);
    if (rest->count) {
      low = middle;
    } else {
      high = middle;
    }
  }
  shrink(hull, low, rest);
}

/* The point of a polygon nearest to another one. */
static void nearest(const polygon *region, const double point[2], double found[2]) {
  double closest = INFINITY, size = 0;
  bool is_inside = true;
  for (int k = 0; k < region->count; k++) {
    const double *a = region->at[k], *b = region->at[(k + 1) % region->count];
    const double along[2] = {b[0] - a[0], b[1] - a[1]};
    const double length = along[0] * along[0] + along[1] * along[1];
    double share = (point[0] - a[0]) * along[0] + (point[1] - a[1]) * along[1], x, y, distance;
    share = length > 0 ? share / length : 0;
    share = share < 0 ? 0 : share > 1 ? 1 : share;
    x = a[0] + share * along[0];
    y = a[1] + share * along[1];
    distance = (x - point[0]) * (x - point[0]) + (y - point[1]) * (y - point[1]);
    size += area(region->at[0], a, b);
    is_inside = is_inside && area(a, b, point) >= 0;
    if (distance >= closest) continue;
    closest = distance;
    found[0] = x;
    found[1] = y;
  }
  if (is_inside && size > THIN) memcpy(found, point, 2 * sizeof *found);
}

/* Whether contacts in the world lie in one plane that is not too steep for the least friction. */
static bool is_plane(double (*contacts)[MR_MASS_CONTACT], int count) {
  const double *n = contacts[0] + 3;
  double low = INFINITY, high = -INFINITY, friction = INFINITY;
  for (int k = 0; k < count; k++) {
    const double *c = contacts[k], height = c[0] * n[0] + c[1] * n[1] + c[2] * n[2];
    for (int i = 0; i < 3; i++)
      if (!(c[3 + i] - n[i] < SAME_NORMAL && n[i] - c[3 + i] < SAME_NORMAL)) return false;
    low = height < low ? height : low;
    high = height > high ? height : high;
    friction = c[6] < friction ? c[6] : friction;
  }
  return high - low < SAME_PLANE && sqrt(n[0] * n[0] + n[1] * n[1]) <= friction * n[2];
}

/* Contacts of the robot in the world. */
static int find_contacts(const mr_mass_agent *agent, double (*found)[MR_MASS_CONTACT]) {
  for (int k = 0; k < agent->whole.contact_count; k++) {
    const double *contact = agent->whole.contacts[k];
    for (int i = 0; i < 3; i++) {
      found[k][i] = agent->own.pose[i][3];
      found[k][3 + i] = 0;
      for (int j = 0; j < 3; j++) {
        found[k][i] += agent->own.pose[i][j] * contact[j];
        found[k][3 + i] += agent->own.pose[i][j] * contact[3 + j];
      }
    }
    found[k][6] = contact[6];
  }
  return agent->whole.contact_count;
}

/* Points of contacts from above, sorted and each once; their count. */
static int sort_points(double (*contacts)[MR_MASS_CONTACT], int count, double (*points)[2]) {
  int size = 0;
  for (int k = 0; k < count; k++) {
    const double x = contacts[k][0], y = contacts[k][1];
    int at = size;
    bool is_new = true;
    for (int j = 0; j < size; j++) {
      const double dx = points[j][0] - x, dy = points[j][1] - y;
      is_new = is_new && !(dx * dx + dy * dy < SAME_POINT * SAME_POINT);
    }
    if (!is_new) continue;
    for (; at > 0 && (points[at - 1][0] > x || (points[at - 1][0] == x && points[at - 1][1] > y)); at--)
      memcpy(points[at], points[at - 1], sizeof *points);
    points[at][0] = x;
    points[at][1] = y;
    size++;
  }
  return size;
}

mr_status mr_balance_target(const mr_mass_agent *agent, double margin, double target[2]) {
  double contacts[MR_MASS_MAX_CONTACTS][MR_MASS_CONTACT], points[MR_MASS_MAX_CONTACTS][2], center[2];
  polygon hull, rest;
  int count;
  if (!agent->own.has_pose || agent->whole.contact_count == 0) return MR_NOT_READY;
  count = find_contacts(agent, contacts);
  if (!is_plane(contacts, count)) return MR_BAD_ARGUMENT;
  find_hull(points, sort_points(contacts, count, points), &hull);
  rest = hull;
  if (hull.count > 2 && margin > 0) shrink_at_most(&hull, margin, &rest);
  find_center(agent, center);
  nearest(&rest, center, target);
  return MR_OK;
}

/* -- the law ----------------------------------------------------------------------------------------- */

void mr_balance_start(mr_balance *law, double rate, double gravity) {
  memset(law, 0, sizeof *law);
  law->rate = rate;
  law->gravity = gravity;
  law->braking = 0.5;
  law->damping = 1e-3;
}

void mr_balance_decide(mr_balance *law, const mr_mass_agent *agent, const double target[2]) {
  const mr_mass_update *whole = &agent->whole;
  double total = whole->mass[3][3], center[2], error[2], pull[2], xx, xy, yy, floor, determinant;
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
  find_center(agent, center);
  for (int i = 0; i < 2; i++)
    error[i] = target[i] - center[i] - law->braking / law->rate * whole->sums[3 + i] / total;
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

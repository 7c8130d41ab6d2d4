#include "modurob/dh.h"

#include <string.h>

#ifdef MR_SINGLE
#define PARALLEL MR_C(3.5e-4) /* sine below which axes count as parallel: root of the epsilon */
#define TOUCHING MR_C(1e-6)   /* distance below which parallel axes overlap [m] */
#else
#define PARALLEL 1.5e-8
#define TOUCHING 1e-12
#endif

/* Mass by its moments: 4 x 4 integral of (r; 1) (r; 1)^T dm, row by row. */
typedef mr_real moments[16];

static void turn_z(mr_real angle, mr_pose *T)
{
  const mr_real rpy[3] = {0, 0, angle};
  *T = mr_unit;
  mr_from_rpy(rpy, T->R);
}

/* Tz(-p) Tx(a) Rx(alpha) Tz(n) */
static void link_transform(const mr_real numbers[4], mr_pose *T)
{
  const mr_real rpy[3] = {numbers[1], 0, 0}, n = numbers[3];
  mr_from_rpy(rpy, T->R);
  T->p[0] = numbers[0];
  T->p[1] = n * T->R[5];
  T->p[2] = n * T->R[8] - numbers[2];
}

static mr_real wrapped(mr_real angle)
{
  while (angle > MR_PI) {
    angle -= 2 * MR_PI;
  }
  while (angle <= -MR_PI) {
    angle += 2 * MR_PI;
  }
  return angle;
}

static void apply(mr_pose *T, const mr_pose *next)
{
  const mr_pose before = *T;
  mr_compose(&before, next, T);
}

void mr_axes(const mr_pose *T, mr_axis_pair *pair)
{
  const mr_real *R = T->R, x = T->p[0], y = T->p[1], z = T->p[2];
  const mr_real sine = mr_sqrt(R[2] * R[2] + R[5] * R[5]);
  if (sine <= PARALLEL) { /* the foot on the second axis is its origin */
    const mr_real turned = mr_atan2(R[3], R[0]), distance = mr_sqrt(x * x + y * y);
    pair->alpha = R[8] > 0 ? 0 : MR_PI;
    pair->p = 0 - z;
    pair->n = pair->a = pair->after = 0;
    pair->before = turned;
    if (distance > TOUCHING) {
      pair->a = distance;
      pair->before = mr_atan2(y, x);
      pair->after = wrapped((R[8] > 0 ? 1 : -1) * (turned - pair->before));
    }
  } else { /* x along z1 x z0 */
    const mr_real c = R[5] / sine, s = -R[2] / sine;
    pair->before = mr_atan2(0 - R[2], R[5]);
    pair->a = x * c + y * s;
    pair->n = (y * c - x * s) / sine;
    pair->alpha = mr_atan2(-sine, R[8]);
    pair->p = pair->n * R[8] - z;
    pair->after = mr_atan2(0 - R[6], 0 - R[7]);
  }
}

/* The moments of Tab. II: mass, center, inertia about the connector. */
static void moments_of(const mr_real part[10], moments out)
{
  const mr_real *J = part + 4, half = (J[0] + J[1] + J[2]) / 2;
  const mr_real S[9] = {half - J[0], -J[3], -J[4], -J[3], half - J[1],
                        -J[5],       -J[4], -J[5], half - J[2]};
  for (int i = 0; i < 3; i++) {
    for (int j = 0; j < 3; j++) {
      out[4 * i + j] = S[3 * i + j];
    }
    out[4 * i + 3] = out[12 + i] = part[0] * part[1 + i];
  }
  out[15] = part[0];
}

/* Add moments given in frame b to those in frame a: T X T^T. */
static void add_carried(const mr_pose *T, const moments given, moments sum)
{
  mr_real A[4][4] = {{0}}, half[4][4];
  for (int i = 0; i < 3; i++) {
    memcpy(A[i], T->R + 3 * i, 3 * sizeof(mr_real));
    A[i][3] = T->p[i];
  }
  A[3][3] = 1;
  for (int i = 0; i < 4; i++) {
    for (int j = 0; j < 4; j++) {
      half[i][j] = 0;
      for (int k = 0; k < 4; k++) {
        half[i][j] += A[i][k] * given[4 * k + j];
      }
    }
  }
  for (int i = 0; i < 4; i++) {
    for (int j = 0; j < 4; j++) {
      for (int k = 0; k < 4; k++) {
        sum[4 * i + j] += half[i][k] * A[j][k];
      }
    }
  }
}

/* Mass, center and inertia of a row from moments in the frame of its axis. */
static void put_mass(mr_dh_row *row, mr_real after, const moments on_axis)
{
  const mr_real numbers[4] = {row->a, row->alpha, row->p, row->n};
  mr_pose rest, link, T, turned;
  moments m = {0};
  turn_z(row->theta, &rest);
  link_transform(numbers, &link);
  apply(&rest, &link);
  mr_inverse(&rest, &T);
  turn_z(after, &turned);
  apply(&T, &turned);
  add_carried(&T, on_axis, m);
  row->mass = m[15];
  for (int i = 0; i < 3; i++) {
    row->center[i] = m[15] > 0 ? m[4 * i + 3] / m[15] : 0;
    for (int j = 0; j < 3; j++) {
      row->inertia[3 * i + j] =
          (i == j ? m[0] + m[5] + m[10] : 0) - (m[4 * i + j] + m[4 * j + i]) / 2;
    }
  }
}

/* Close the row of the axis before `T`, the next axis or the tip in its frame. */
static void put_row(mr_dh_row *row, const mr_pose *T, mr_real n_before, mr_real after_before,
                    const moments mass)
{
  mr_axis_pair pair;
  mr_axes(T, &pair);
  row->a = pair.a;
  row->alpha = pair.alpha;
  row->p = pair.p;
  row->n = pair.n;
  row->d = n_before - pair.p;
  row->theta = wrapped(after_before + pair.before);
  row->turn = pair.after;
  put_mass(row, after_before, mass);
}

mr_status mr_dh_chain(const mr_pair *modules, int module_count, mr_dh_row *rows, int *count,
                      mr_pose *root)
{
  mr_pose T = mr_unit, next; /* the connector so far, in the frame of the last axis */
  mr_axis_pair first = {0, 0, 0, 0, 0, 0};
  mr_real n_before = 0, after_before = 0;
  moments mass = {0}, part;
  int axes = 0;
  for (int k = 0; k < module_count; k++) {
    const mr_pair *module = &modules[k];
    if (axes > 0) {
      moments_of(module->proximal_mass, part);
      add_carried(&T, part, mass);
    }
    turn_z(-module->proximal[4], &next);
    apply(&T, &next);
    link_transform(module->proximal, &next);
    apply(&T, &next);
    if (module->joint >= 0) {
      if (axes == 0) {
        mr_axes(&T, &first);
        *root = T;
        turn_z(-first.after, &next);
        apply(root, &next);
        after_before = first.after;
      } else {
        put_row(&rows[axes - 1], &T, n_before, after_before, mass);
        n_before = rows[axes - 1].n;
        after_before = rows[axes - 1].turn;
      }
      rows[axes++].module = (uint8_t)k;
      T = mr_unit;
    }
    turn_z(module->delta_j, &next);
    apply(&T, &next);
    link_transform(module->distal, &next);
    apply(&T, &next);
    turn_z(module->distal[4], &next);
    apply(&T, &next);
    if (module->joint >= 0) {
      memset(mass, 0, sizeof mass);
      moments_of(module->distal_mass, part);
      add_carried(&T, part, mass);
    }
  }
  if (axes == 0) {
    return MR_BAD_ARGUMENT;
  }
  put_row(&rows[axes - 1], &T, n_before, after_before, mass);
  *count = axes;
  return MR_OK;
}

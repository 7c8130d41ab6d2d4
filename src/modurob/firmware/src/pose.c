#include "modurob/pose.h"

const mr_pose mr_unit = {{1, 0, 0, 0, 1, 0, 0, 0, 1}, {0, 0, 0}};

mr_real mr_abs(mr_real x)
{
  return x < 0 ? -x : x;
}

mr_real mr_dot(const mr_real a[3], const mr_real b[3])
{
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

mr_real mr_norm(const mr_real a[3])
{
  return mr_sqrt(mr_dot(a, a));
}

void mr_cross(const mr_real a[3], const mr_real b[3], mr_real out[3])
{
  out[0] = a[1] * b[2] - a[2] * b[1];
  out[1] = a[2] * b[0] - a[0] * b[2];
  out[2] = a[0] * b[1] - a[1] * b[0];
}

void mr_times(const mr_real A[9], const mr_real B[9], mr_real out[9])
{
  for (int i = 0; i < 3; i++) {
    for (int j = 0; j < 3; j++) {
      out[3 * i + j] = A[3 * i] * B[j] + A[3 * i + 1] * B[3 + j] + A[3 * i + 2] * B[6 + j];
    }
  }
}

void mr_times_t(const mr_real A[9], const mr_real B[9], mr_real out[9])
{
  for (int i = 0; i < 3; i++) {
    for (int j = 0; j < 3; j++) {
      out[3 * i + j] = mr_dot(A + 3 * i, B + 3 * j);
    }
  }
}

void mr_turn_inertia(const mr_real R[9], const mr_real inertia[9], mr_real out[9])
{
  mr_real half[9];
  mr_times(R, inertia, half);
  mr_times_t(half, R, out);
  out[3] = out[1]; /* symmetric to the last bit */
  out[6] = out[2];
  out[7] = out[5];
}

void mr_apply(const mr_real A[9], const mr_real x[3], mr_real out[3])
{
  for (int i = 0; i < 3; i++) {
    out[i] = mr_dot(A + 3 * i, x);
  }
}

void mr_apply_t(const mr_real A[9], const mr_real x[3], mr_real out[3])
{
  for (int i = 0; i < 3; i++) {
    out[i] = A[i] * x[0] + A[3 + i] * x[1] + A[6 + i] * x[2];
  }
}

void mr_point(const mr_pose *T_ab, const mr_real x_b[3], mr_real x_a[3])
{
  mr_apply(T_ab->R, x_b, x_a);
  for (int i = 0; i < 3; i++) {
    x_a[i] += T_ab->p[i];
  }
}

void mr_compose(const mr_pose *T_ab, const mr_pose *T_bc, mr_pose *T_ac)
{
  mr_times(T_ab->R, T_bc->R, T_ac->R);
  mr_point(T_ab, T_bc->p, T_ac->p);
}

void mr_inverse(const mr_pose *T_ab, mr_pose *T_ba)
{
  for (int i = 0; i < 3; i++) {
    for (int j = 0; j < 3; j++) {
      T_ba->R[3 * i + j] = T_ab->R[3 * j + i];
    }
  }
  mr_apply(T_ba->R, T_ab->p, T_ba->p);
  for (int i = 0; i < 3; i++) {
    T_ba->p[i] = MR_C(0.0) - T_ba->p[i];
  }
}

void mr_rotation(const mr_real axis[3], mr_real angle, mr_real R[9])
{
  const mr_real x = axis[0], y = axis[1], z = axis[2];
  const mr_real s = mr_sin(angle), c = mr_cos(angle), half = mr_sin(angle / 2);
  const mr_real versed = 2 * (half * half); /* 1 - c without cancellation */
  const mr_real xx = y * y + z * z, yy = z * z + x * x, zz = x * x + y * y;
  const mr_real yz = y * z * versed, zx = z * x * versed, xy = x * y * versed;
  R[0] = (1 - xx) + xx * c;
  R[4] = (1 - yy) + yy * c;
  R[8] = (1 - zz) + zz * c;
  R[1] = xy - z * s;
  R[3] = xy + z * s;
  R[2] = zx + y * s;
  R[6] = zx - y * s;
  R[5] = yz - x * s;
  R[7] = yz + x * s;
}

void mr_from_rpy(const mr_real rpy[3], mr_real R[9])
{
  static const mr_real axes[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
  mr_real X[9], Y[9], Z[9], ZY[9];
  mr_rotation(axes[0], rpy[0], X);
  mr_rotation(axes[1], rpy[1], Y);
  mr_rotation(axes[2], rpy[2], Z);
  mr_times(Z, Y, ZY);
  mr_times(ZY, X, R);
  for (int k = 0; k < 9; k++) {
    for (int whole = -1; whole <= 1; whole++) {
      if (mr_abs(R[k] - (mr_real)whole) < MR_SNAP) {
        R[k] = (mr_real)whole;
      }
    }
  }
}

void mr_mating(int turn, mr_pose *T_ab)
{
  const mr_real yaw[3] = {0, 0, (mr_real)turn * (MR_PI / 180)}, half[3] = {MR_PI, 0, 0};
  mr_real Z[9], X[9];
  mr_from_rpy(yaw, Z);
  mr_from_rpy(half, X);
  *T_ab = mr_unit;
  mr_times(Z, X, T_ab->R);
}

void mr_add_point_mass(mr_real mass, const mr_real c[3], mr_real inertia[9])
{
  const mr_real x = c[0], y = c[1], z = c[2];
  inertia[0] += mass * (y * y + z * z);
  inertia[4] += mass * (z * z + x * x);
  inertia[8] += mass * (x * x + y * y);
  inertia[1] -= mass * (x * y);
  inertia[3] -= mass * (x * y);
  inertia[2] -= mass * (x * z);
  inertia[6] -= mass * (x * z);
  inertia[5] -= mass * (y * z);
  inertia[7] -= mass * (y * z);
}

/* Newton's steps on the unit circle from the nearest axis: each cubes the error. */
mr_real mr_atan2(mr_real y, mr_real x)
{
  const mr_real along_x = mr_abs(x), along_y = mr_abs(y);
  const mr_real largest = along_x > along_y ? along_x : along_y;
  mr_real length, angle;
  if (!(largest > 0)) {
    return 0;
  }
  x /= largest;
  y /= largest;
  length = mr_sqrt(x * x + y * y);
  x /= length;
  y /= length;
  if (along_y > along_x) {
    angle = y > 0 ? MR_PI / 2 : -MR_PI / 2;
  } else {
    angle = x > 0 ? 0 : (y < 0 ? -MR_PI : MR_PI);
  }
  for (int k = 0; k < 5; k++) {
    const mr_real c = mr_cos(angle), s = mr_sin(angle);
    angle += y * c - x * s; /* the sine of the missing angle, which is pi/4 at most */
  }
  return angle;
}

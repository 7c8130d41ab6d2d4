/* Vectors (3), matrices (3 x 3, row by row) and poses. A result may not be one of the arguments. */
#ifndef MODUROB_POSE_H
#define MODUROB_POSE_H

#include "modurob/record.h"

/* Bounds that depend on the rounding of mr_real. */
#ifdef MR_SINGLE
#define MR_ALIGNED MR_C(4e-6)       /* of an axis' entries, from 0 and 1 */
#define MR_NOISE MR_C(1e-7)         /* of the largest entry: what turning a frame leaves of a zero */
#define MR_ONE_LINE MR_C(1e-5)      /* of unit screws, per meter */
#define MR_PERPENDICULAR MR_C(1e-5) /* |cos| of two directions */
#define MR_SNAP MR_C(4e-7)          /* of the entries of rotations by whole quarter turns */
#else
#define MR_ALIGNED 1e-12
#define MR_NOISE 1e-15
#define MR_ONE_LINE 1e-9
#define MR_PERPENDICULAR 1e-9
#define MR_SNAP 1e-15
#endif

#define MR_PI MR_C(3.14159265358979323846)

mr_real mr_abs(mr_real x);
mr_real mr_dot(const mr_real a[3], const mr_real b[3]);
mr_real mr_norm(const mr_real a[3]);
void mr_cross(const mr_real a[3], const mr_real b[3], mr_real out[3]);
void mr_times(const mr_real A[9], const mr_real B[9], mr_real out[9]);   /* A B */
void mr_times_t(const mr_real A[9], const mr_real B[9], mr_real out[9]); /* A B^T */
/* R I R^T */
void mr_turn_inertia(const mr_real R[9], const mr_real inertia[9], mr_real out[9]);
void mr_apply(const mr_real A[9], const mr_real x[3], mr_real out[3]);   /* A x */
void mr_apply_t(const mr_real A[9], const mr_real x[3], mr_real out[3]); /* A^T x */

extern const mr_pose mr_unit;

void mr_compose(const mr_pose *T_ab, const mr_pose *T_bc, mr_pose *T_ac);
void mr_inverse(const mr_pose *T_ab, mr_pose *T_ba);
/* x_a = R x_b + p */
void mr_point(const mr_pose *T_ab, const mr_real x_b[3], mr_real x_a[3]);
/* Rotation about a unit axis. [rad] */
void mr_rotation(const mr_real axis[3], mr_real angle, mr_real R[9]);
/* Rz(yaw) Ry(pitch) Rx(roll), exact for whole quarter turns. [rad] */
void mr_from_rpy(const mr_real rpy[3], mr_real R[9]);
/* Pose of port frame b in the port frame a that it docks to. [deg] */
void mr_mating(int turn, mr_pose *T_ab);
/* Add m (|c|^2 E - c c^T) to an inertia: parallel axes. */
void mr_add_point_mass(mr_real mass, const mr_real c[3], mr_real inertia[9]);
/* The angle of the direction (x, y) in (-pi, pi]; 0 for (0, 0). [rad] */
mr_real mr_atan2(mr_real y, mr_real x);

#endif

/* The Denavit-Hartenberg table of a chain from its modules' own parameters (giusti2015, III). */
#ifndef MODUROB_DH_H
#define MODUROB_DH_H

#include "modurob/pose.h"

/* A(q) = Rz(theta + q) Tz(-p) Tx(a) Rx(alpha) Tz(n) leads from one joint axis to the next. */
typedef struct mr_dh_row {
  mr_real a, alpha, d, theta, n, p; /* [m, rad]; d = n of the row before - p */
  mr_real turn;                     /* from x of the table to x of the datasheet [rad] */
  uint8_t module;                   /* in the chain */
  mr_real mass;                     /* of the link that the joint moves [kg] */
  mr_real center[3];                /* in the frame at the end of the row [m] */
  mr_real inertia[9];               /* about that frame's origin [kg m^2] */
} mr_dh_row;

/* The common normal of the z axes of two frames, `T` the second in the first:
 * T = Rz(before) Tz(-p) Tx(a) Rx(alpha) Tz(n) Rz(after). */
typedef struct mr_axis_pair {
  mr_real a, alpha, p, n, before, after;
} mr_axis_pair;

void mr_axes(const mr_pose *T, mr_axis_pair *pair);

/* The rows of modules docked in a row, base first; `root` is the table's frame on the first axis
 * in the first in-connector. `count` is set to the number of rows, one for each joint. */
mr_status mr_dh_chain(const mr_pair *modules, int module_count, mr_dh_row *rows, int *count,
                      mr_pose *root);

#endif

/* Sizes, number type and status codes of the modurob runtime.
 *
 * C99 without allocation or recursion; of the mathematics library only sin, cos and sqrt.
 * Every size can be set by the compiler (-DMR_MAX_MODULES=32); all files of one program must be
 * compiled with the same values. `modurob export --runtime` writes them into modurob/sizes.h.
 */
#ifndef MODUROB_CONFIG_H
#define MODUROB_CONFIG_H

#ifdef MR_HAVE_SIZES /* set by the Makefile and the CMakeLists.txt of an export */
#include "modurob/sizes.h"
#endif

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#error "-ffast-math and -ffinite-math-only remove the checks for infinite numbers and NaN"
#endif

#ifdef MR_SINGLE
typedef float mr_real;
#define MR_C(x) x##f /* a literal: MR_C(0.5) */
#define mr_sin sinf
#define mr_cos cosf
#define mr_sqrt sqrtf
#else
typedef double mr_real;
#define MR_C(x) x
#define mr_sin sin
#define mr_cos cos
#define mr_sqrt sqrt
#endif

/* Of a robot. */
#ifndef MR_MAX_MODULES
#define MR_MAX_MODULES 16
#endif
#ifndef MR_MAX_KINDS /* different datasheets among the modules */
#define MR_MAX_KINDS 6
#endif
#ifndef MR_MAX_JOINTS /* that can move */
#define MR_MAX_JOINTS 12
#endif
#ifndef MR_MAX_PARTS /* bodies of all modules */
#define MR_MAX_PARTS (3 * MR_MAX_MODULES)
#endif

/* Of one datasheet. */
#ifndef MR_MAX_KIND_BODIES
#define MR_MAX_KIND_BODIES 4
#endif
#ifndef MR_MAX_KIND_JOINTS
#define MR_MAX_KIND_JOINTS 3
#endif
#ifndef MR_MAX_KIND_PORTS
#define MR_MAX_KIND_PORTS 8
#endif
#ifndef MR_MAX_TURNS /* allowed docking turns of a port */
#define MR_MAX_TURNS 4
#endif
#ifndef MR_MAX_MATES /* connectors that a port mates with */
#define MR_MAX_MATES 2
#endif

/* Result of every function that can fail: MR_OK, or one of the negative codes. */
typedef enum mr_status {
  MR_OK = 0,
  MR_NOT_A_RECORD = -1,     /* does not start with MROB */
  MR_TOO_SHORT = -2,        /* ends before its content does */
  MR_BAD_HEADER_SUM = -3,   /* checksum of the header */
  MR_BAD_SUM = -4,          /* checksum of the whole */
  MR_NEWER_VERSION = -5,    /* layout of a newer version, or a needed field that is unknown */
  MR_BAD_LENGTH = -6,       /* size differs from the size in the header */
  MR_BAD_FIELD = -7,        /* an entry has no meaning: mask, word, count, text */
  MR_BAD_INDEX = -8,        /* names a body, joint or port that is not there */
  MR_BAD_NUMBER = -9,       /* not finite, or outside its range */
  MR_BAD_DATASHEET = -10,   /* fields contradict each other */
  MR_TOO_MANY = -11,        /* more than a size in config.h leaves room for */
  MR_UNKNOWN_MODULE = -12,  /* a docking names a module without a record */
  MR_UNKNOWN_PORT = -13,    /* a docking names a port that its module does not have */
  MR_PORT_TAKEN = -14,      /* two dockings name one port */
  MR_BAD_DOCKING = -15,     /* connectors or turn do not mate */
  MR_LOOP = -16,            /* dockings form a loop */
  MR_SINGULAR = -17,        /* a matrix that must be inverted is singular */
  MR_BAD_ARGUMENT = -18,
  MR_NOT_READY = -19,       /* there is no robot with joints, or not all were measured */
  MR_BEYOND_LIMITS = -20    /* a motion leaves the limits of a joint, or is too fast */
} mr_status;

#endif

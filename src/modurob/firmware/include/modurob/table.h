/* The table of a robot: its links in joint frames, as the generated kernels read them.
 *
 * Every joint acts along x of its link's frame. A row has the same numbers in the same order as a
 * row of the dyad tier of modurob in Python.
 */
#ifndef MODUROB_TABLE_H
#define MODUROB_TABLE_H

#include "modurob/robot.h"

typedef struct mr_row {
  mr_real p[3]; /* joint frame in the parent's; in the row of the base gravity [m, m/s^2] */
  mr_real mass; /* [kg] */
  mr_real moment[3]; /* mass times center [kg m] */
  mr_real second[6]; /* xx, yy, zz, xy, xz, yz of the integral of r r^T dm [kg m^2] */
  mr_real sign;      /* -1 where users read the joint backwards */
  mr_real travel;    /* the sign of a displacement; 0 where it moves the whole robot */
  mr_real viscous, coulomb, armature, stiffness;
  mr_real R[9];
} mr_row;

enum { MR_TIP = 1, MR_FIRST = 2, MR_ROTOR = 4 }; /* bits of a variant */
enum { MR_GENERAL = 3, MR_SLIDES = 4 };          /* pattern of other axes; added where prismatic */

#define MR_NONE 255

/* A body of a module, or the rotor in front of an elastic joint. */
typedef struct mr_part {
  mr_pose pose;    /* in the joint frame of its link */
  uint8_t link;    /* 0 is the base */
  uint8_t module, body;
  uint8_t joint;   /* of the datasheet, by which it hangs on `previous`, or MR_NONE */
  uint8_t docking; /* by which its module hangs on `previous`, or MR_NONE */
  uint8_t previous;
  uint8_t flags;
} mr_part;

enum { /* flags of a part */
  MR_REVERSED = 1, /* the joint leads from its child to its parent */
  MR_IS_ROTOR = 2,
  MR_IS_SPRING = 4,
  MR_WHOLE = 8, /* all bodies of the module as one */
  MR_LOCKED = 16
};

typedef struct mr_table {
  mr_row rows[MR_MAX_JOINTS + 1];
  uint8_t parent[MR_MAX_JOINTS];  /* link of the joint's parent; joint k moves link k + 1 */
  uint8_t pattern[MR_MAX_JOINTS]; /* 0, 1, 2: axis along x, y, z of the parent; see above */
  uint8_t variant[MR_MAX_JOINTS];
  uint8_t moved[MR_MAX_JOINTS];          /* the part that each joint moves */
  double turn[MR_MAX_JOINTS + 1][9];     /* joint frames in the model's link frames */
  mr_part parts[MR_MAX_PARTS + 1];       /* the first is the world */
  mr_docking dockings[MR_MAX_MODULES];   /* each after the one that brought its first module */
  uint8_t joint_count, part_count, docking_count;
  uint8_t has_friction;
} mr_table;

typedef struct mr_options {
  mr_pose base_pose;  /* of the base module in the world */
  mr_real gravity[3]; /* in the world [m/s^2] */
  uint8_t base;       /* module */
  uint8_t physical;   /* 0: docked cubes bend about one hinge; 1: joints of the hardware */
  uint8_t stiff;      /* 1: springs of elastic joints do not move */
  uint8_t placed;     /* 1: in the world, for kinematics; 0: near the base, exact far from it too */
} mr_options;

/* Module 0 at the origin, weight along -z, as `Organism.model()` has it. */
extern const mr_options mr_default_options;

/* Build the table of the modules that the base reaches; it is empty where the status is not MR_OK. A
 * base_pose that is no pose and gravity that is not finite are a MR_BAD_ARGUMENT; records whose numbers
 * are too large to calculate with are a MR_BAD_NUMBER. */
mr_status mr_table_build(const mr_robot *robot, const mr_options *options, mr_table *table);

#endif

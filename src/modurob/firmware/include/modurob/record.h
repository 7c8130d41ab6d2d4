/* Records: datasheets as bytes from the memory of a module. docs/guide/records.md has the layout. */
#ifndef MODUROB_RECORD_H
#define MODUROB_RECORD_H

#include "modurob/config.h"

#define MR_ID_SIZE 16 /* bytes of a module's own id, most significant first */

/* Pose of a frame b in a frame a: x_a = R x_b + p, R row by row. [m] */
typedef struct mr_pose {
  mr_real R[9];
  mr_real p[3];
} mr_pose;

typedef struct mr_solid {
  mr_real mass;       /* [kg] */
  mr_real center[3];  /* center of mass [m] */
  mr_real inertia[9]; /* about the center of mass, row by row [kg m^2] */
} mr_solid;

enum { MR_FIXED = 0, MR_REVOLUTE = 1, MR_PRISMATIC = 2 };

typedef struct mr_joint {
  mr_pose pose; /* joint frame in the parent's frame at q = 0 */
  mr_real axis[3];
  mr_real lower, upper; /* [rad, m]; valid where has_lower, has_upper */
  mr_real viscous, coulomb;
  mr_real armature; /* inertia of the rotor as the joint feels it [kg m^2, kg] */
  mr_real stiffness, damping;
  uint8_t type; /* MR_FIXED, MR_REVOLUTE, MR_PRISMATIC */
  uint8_t parent, child;
  uint8_t has_lower, has_upper, is_elastic;
} mr_joint;

typedef struct mr_port {
  mr_pose pose;   /* port frame in the body's frame: z outward, x along the reference */
  int32_t number; /* label of a numbered port; of a named one the CRC-32 of its name / 2 */
  uint32_t connector, mates[MR_MAX_MATES]; /* CRC-32 of the names */
  uint16_t turns[MR_MAX_TURNS], turn_count; /* [deg]; up to 360 */
  uint8_t is_named, body, mate_count;
} mr_port;

/* A datasheet. The first body's frame is the module's. */
typedef struct mr_kind {
  mr_solid bodies[MR_MAX_KIND_BODIES];
  mr_pose rest[MR_MAX_KIND_BODIES]; /* of the bodies in the module's frame, joints at zero */
  mr_solid whole;                   /* all bodies as one, joints at zero, in the module's frame */
  mr_joint joints[MR_MAX_KIND_JOINTS];
  mr_port ports[MR_MAX_KIND_PORTS];
  mr_real size; /* [m] */
  uint8_t body_count, joint_count, port_count;
  int8_t dyad_joint; /* the hinge that a docking bends about, or -1 */
  uint8_t is_virtual;
} mr_kind;

/* Denavit-Hartenberg parameters of a module between two of its ports (giusti2015, Tab. I, II). */
typedef struct mr_pair {
  uint8_t input, output; /* ports, by their place in the record */
  int8_t joint;          /* the joint between them, or -1 */
  mr_real proximal[5];   /* a, alpha, p, n, delta [m, rad] */
  mr_real distal[5];
  mr_real delta_j;           /* [rad] */
  mr_real proximal_mass[10]; /* mass, center, Ixx, Iyy, Izz, Ixy, Ixz, Iyz at the connector */
  mr_real distal_mass[10];
} mr_pair;

/* Read the id of a record whose header is whole, even if the rest is damaged. */
mr_status mr_record_id(const uint8_t *data, size_t size, uint8_t id[MR_ID_SIZE]);

/* Read the datasheet of a record. Drawings and texts are skipped unread. */
mr_status mr_record_read(const uint8_t *data, size_t size, uint8_t id[MR_ID_SIZE], mr_kind *kind);

/* Read the parameters between two ports of a record that mr_record_read accepts. */
mr_status mr_record_pair(const uint8_t *data, size_t size, int input, int output, mr_pair *pair);

/* The port with a number or a name as its label; -1 if there is none. */
int mr_port_numbered(const mr_kind *kind, int32_t number);
int mr_port_named(const mr_kind *kind, const char *name);

#endif

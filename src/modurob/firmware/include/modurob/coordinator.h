/* The program at the base of a robot, in fixed memory.
 *
 * `mr_coordinator` collects what modules report and finds the tree that follows from it;
 * `mr_bus_robot` builds the robot of that tree, and holds or moves its joints with computed torque. A step is
 * `mr_coordinator_take` for each frame, `mr_coordinator_signal` for the connector, then
 * `mr_coordinator_finish`; a tick of the clock is `mr_bus_robot_tick`.
 */
#ifndef MODUROB_COORDINATOR_H
#define MODUROB_COORDINATOR_H

#include "modurob/bus.h"
#include "modurob/control.h"

#ifndef MR_BUS_MAX_ENTRIES /* modules that are remembered; one that restarts is another one */
#define MR_BUS_MAX_ENTRIES (2 * MR_MAX_MODULES)
#endif
#define MR_BUS_MAX_FINDINGS (3 * MR_MAX_MODULES)
#define MR_BUS_GAINS_BYTES (1 + MR_BUS_ADDRESS_BYTES + 24 * MR_BUS_MAX_JOINTS)
#define MR_BUS_MAX_ASKS (2 * MR_MAX_MODULES)

/* Newest data from a module. */
typedef struct mr_entry {
  mr_bus_address address;
  bool is_used, has_report, has_record;
  bool is_driven; /* it was sent a torque */
  mr_text name;
  uint8_t neighbor_count;
  mr_neighbor neighbors[MR_MAX_KIND_PORTS];
  mr_newest reported, sensed;
  uint32_t cycle; /* that the values answer */
  double heard_at;
  uint8_t value_count;
  double values[2 * MR_BUS_MAX_JOINTS]; /* q, v, q, v ... [rad, m, rad/s, m/s] */
  uint32_t record_size;
  uint16_t pieces[MR_BUS_MAX_PIECES];
  uint8_t record[MR_BUS_MAX_RECORD], written[MR_BUS_MAX_RECORD];
} mr_entry;

/* See Survey in modurob/distributed/bus/survey.py. */
typedef enum mr_finding_kind {
  MR_ATTACHED,   /* a module of the tree by its docking; the base first, each after its parent */
  MR_UNREPORTED, /* child without a report so far */
  MR_UNREAD,     /* child without a record so far */
  MR_UNHEARD,    /* a neighbor at parent and port not heard so far */
  MR_SILENT,     /* a child at parent and port that was heard before */
  MR_LOST,       /* a docking of a silent module or beyond, as last reported */
  MR_RING,       /* a docking that closes a loop */
  MR_TWIN,       /* child with the id of parent */
  MR_SKEWED,     /* a docking whose sides report different turns */
  MR_FINDING_KINDS
} mr_finding_kind;

typedef struct mr_finding {
  mr_finding_kind kind;
  mr_bus_address parent, child;
  mr_text port, child_port;
  uint16_t turn; /* [deg] */
} mr_finding;

typedef struct mr_survey {
  mr_finding findings[MR_BUS_MAX_FINDINGS];
  uint16_t count;
  bool is_cut; /* there was no room for all */
} mr_survey;

typedef struct mr_request {
  mr_bus_address module;
  mr_bus_wanted wanted;
  double due; /* [s] */
} mr_request;

/* State of the coordinator. It has pointers into itself: do not copy it. */
typedef struct mr_coordinator {
  mr_node links; /* to the base module, at port 0; of the rest of a module nothing is used */
  uint64_t beat;
  mr_entry entries[MR_BUS_MAX_ENTRIES];
  mr_survey survey, found;
  uint32_t surveys;  /* count of changes of the survey, ... */
  uint32_t records;  /* ... and of records */
  uint32_t revision; /* of reports and records */
  uint32_t seen_revision, seen_changes;
  bool ready; /* the tree is complete, or the wait for the rest is over */
  double waiting_since;
  mr_request asks[MR_BUS_MAX_ASKS];
  uint16_t ask_count;
  uint32_t answered; /* number of the last cycle that has ended */
  double wake;
  bool has_input;
} mr_coordinator;

/* Start with the label of the base's port. `boot` is a random number, `beat` above all before. */
mr_status mr_coordinator_start(mr_coordinator *coordinator, uint32_t boot, uint64_t beat,
                               const mr_text *port, double heartbeat,
                               const mr_node_outputs *outputs);
void mr_coordinator_take(mr_coordinator *coordinator, const uint8_t *frame, size_t size,
                         double now);
/* A signal of the base's connector, PLUGGED or UNPLUGGED, or a message for a module. */
void mr_coordinator_signal(mr_coordinator *coordinator, const uint8_t *signal, size_t size,
                           double now);
void mr_coordinator_finish(mr_coordinator *coordinator, double now);
/* The entry of a module, or NULL. */
mr_entry *mr_coordinator_entry(mr_coordinator *coordinator, const mr_bus_address *address);

/* -- the robot: coordinator_robot.c ----------------------------------------------------------------- */

typedef struct mr_robot_module {
  mr_bus_address address;
  bool is_silent;
  bool is_bad; /* its last reading cannot be used: its motors are let go */
  uint8_t joint_count;
  uint8_t joints[MR_BUS_MAX_JOINTS]; /* in the table; MR_NONE for one that is locked */
  bool is_measured;
  double measured_at; /* time of the last good reading since the module was switched on [s] */
  bool has_set_point[MR_BUS_MAX_JOINTS];
  double q[MR_BUS_MAX_JOINTS], v[MR_BUS_MAX_JOINTS]; /* the last good reading */
  double set_point[MR_BUS_MAX_JOINTS];
  double torques[MR_BUS_MAX_JOINTS];
  bool is_driven; /* `torques` are those of the last tick */
} mr_robot_module;

typedef struct mr_bus_robot_settings {
  mr_real gravity[3]; /* [m/s^2] */
  mr_real k0, k1;     /* of computed torque [1/s^2, 1/s] */
  mr_real sample_time; /* of computed torque, 0 for a law without one [s] */
} mr_bus_robot_settings;

/* A motion to a place, by the ids of the modules: it goes on when the body changes. */
typedef struct mr_bus_motion {
  bool is_on, waits;
  bool is_lost;    /* the last one has ended because none of its joints was left */
  double duration; /* [s] */
  double done;     /* time of the motion reached so far [s] */
  uint8_t count;
  struct {
    uint8_t uid[MR_ID_SIZE];
    uint8_t place; /* of the joint among those of its module that move */
    double c[6];   /* of its polynomial of fifth order, over time / duration */
  } joints[MR_MAX_JOINTS];
  /* the path to and along it on this body, by the joints of the table */
  bool has_path;
  uint8_t along[MR_MAX_JOINTS];     /* in `joints`; MR_NONE for one that stays */
  double stays[MR_MAX_JOINTS];      /* [rad, m] */
  double approach[MR_MAX_JOINTS][6];
  double reached[MR_MAX_JOINTS][3]; /* q, v, a wanted now */
  double clock, lead, from; /* time on the path, length of the approach, `done` before it [s] */
  double ticked;            /* time of the last tick [s] */
} mr_bus_motion;

typedef enum mr_bus_mode { MR_IDLES, MR_HOLDS, MR_MOVES, MR_WAITS, MR_RELAXES } mr_bus_mode;

typedef struct mr_bus_robot {
  mr_bus_robot_settings settings;
  mr_robot_module modules[MR_MAX_MODULES], before[MR_MAX_MODULES];
  uint8_t module_count, before_count, left_out; /* modules that cannot be used */
  uint32_t surveys, records;                    /* that it was built of */
  uint32_t built;                               /* count */
  uint32_t body;                                /* checksum of records and dockings */
  bool has_model, has_law, is_relaxed;
  mr_bus_motion motion, next; /* `next` is room for one that is being checked */
  mr_robot robot;
  mr_table table;
  mr_computed_torque law;
  mr_real inertia[MR_MAX_JOINTS]; /* diagonal of the mass matrix */
  mr_work work;
} mr_bus_robot;

void mr_bus_robot_start(mr_bus_robot *robot, const mr_bus_robot_settings *settings);
/* Build the robot of a new survey; false if there is none. */
bool mr_bus_robot_rebuild(mr_bus_robot *robot, mr_coordinator *coordinator);
/* Write the message with the gains with which a module that answers can hold its joints alone: for
 * mr_coordinator_signal after the robot was rebuilt. Returns its size. */
size_t mr_bus_robot_gains(const mr_bus_robot *robot, const mr_robot_module *module,
                          uint8_t data[MR_BUS_GAINS_BYTES]);
/* Begin a cycle of the clocked loop: torques go out, readings come back. */
void mr_bus_robot_tick(mr_bus_robot *robot, mr_coordinator *coordinator, double now);

/* -- motions: coordinator_motion.c ------------------------------------------------------------------ */

/* Move all joints to a place, from rest or from the motion of now, and hold it: q of all joints of the
 * table. [rad, m] [s] */
mr_status mr_bus_robot_goto(mr_bus_robot *robot, const double *q, int count, double seconds);
/* Hold the joints where they are now; ends a motion. */
mr_status mr_bus_robot_hold(mr_bus_robot *robot);
/* Let all motors go until the next command. */
mr_status mr_bus_robot_relax(mr_bus_robot *robot);
mr_bus_mode mr_bus_robot_mode(const mr_bus_robot *robot);

/* Of the two files with each other: the reference at a tick, set points at the places measured, and a
 * place within the limits of the joint that is at such a place among those that move. */
void mr_bus_robot_aim(mr_bus_robot *robot, double now, bool is_hindered, mr_reference *aim);
void mr_bus_robot_hold_here(mr_bus_robot *robot);
double mr_within_limits(const mr_kind *kind, uint8_t place, double q);

#endif

/* The mass network of moll2006 in fixed memory: what lies beyond each connector of a module, the
 * whole robot's mass properties, the election of a leader, and the sums of the balancing law.
 *
 * The program of one module, equal to modurob/distributed/mass/agent.py. The module's own kinematics
 * come in as an `mr_mass_posture`, which follows from its record and the places of its joints. Sets of
 * mass are pseudo-inertias [S h; h^T m]: they add, and move with T P T^T.
 */
#ifndef MODUROB_MASS_H
#define MODUROB_MASS_H

#include "modurob/bus.h"
#include "modurob/record.h"

#ifndef MR_MASS_MAX_PORTS
#define MR_MASS_MAX_PORTS MR_BUS_MAX_PORTS
#endif
#ifndef MR_MASS_MAX_BODIES /* of this module */
#define MR_MASS_MAX_BODIES MR_MAX_KIND_BODIES
#endif
#ifndef MR_MASS_MAX_JOINTS /* of this module */
#define MR_MASS_MAX_JOINTS MR_MAX_KIND_JOINTS
#endif
#ifndef MR_MASS_MAX_CONTACTS /* of the whole robot, at most 255; more are not counted */
#define MR_MASS_MAX_CONTACTS 16
#endif
#define MR_MASS_CONTACT 7 /* numbers of a contact: position, normal, coefficient of friction */
#define MR_MASS_SUMS 5
#define MR_MASS_UPDATE_BYTES (1 + 80 + 17 + 8 * MR_MASS_CONTACT * MR_MASS_MAX_CONTACTS + 96 + 40)
#define MR_MASS_PACKET_BYTES (25 + MR_MASS_UPDATE_BYTES)

typedef double mr_matrix[4][4];

/* The best ticket of a set of modules: later draws beat earlier ones, then numbers decide. */
typedef struct mr_election {
  uint32_t draw; /* 0 if no module of the set is a candidate */
  uint64_t number;
  uint32_t holders;
} mr_election;

/* Everything on one side of a docking. */
typedef struct mr_mass_update {
  mr_matrix mass;
  mr_election election;
  uint8_t contact_count;
  double contacts[MR_MASS_MAX_CONTACTS][MR_MASS_CONTACT];
  double sums[MR_MASS_SUMS]; /* xx, xy, yy of j j^T / i, and x, y of j v, of all joints there */
  bool has_pose;
  mr_matrix pose; /* of the connector in the world, if the leader is on that side */
} mr_mass_update;

/* The module in its own frame, at the displacements of its joints. */
typedef struct mr_mass_posture {
  uint8_t ports, bodies, joints;
  mr_matrix port[MR_MASS_MAX_PORTS];             /* connector frames [m] */
  mr_matrix body[MR_MASS_MAX_BODIES];            /* sets of mass */
  double axis[MR_MASS_MAX_JOINTS][3];            /* of the child's turn or slide */
  double point[MR_MASS_MAX_JOINTS][3];           /* of each axis [m] */
  bool prismatic[MR_MASS_MAX_JOINTS];
  uint32_t child_bodies[MR_MASS_MAX_JOINTS];     /* bits of the bodies on the child's side */
  uint32_t child_ports[MR_MASS_MAX_JOINTS];      /* bits of the connectors there */
  uint8_t port_body[MR_MASS_MAX_PORTS];
} mr_mass_posture;

typedef struct mr_mass_link {
  bool plugged, has_heard, gone, waiting, ack_pending;
  mr_matrix T_here_there; /* the neighbor's connector in this one */
  uint64_t there;         /* boot number of the neighbor, 0 while unknown */
  uint32_t number;        /* of the last update posted */
  mr_newest newest;       /* update of the neighbor */
  mr_mass_update heard;   /* in this connector's frame */
  double tried_at, sent_at, heard_at; /* [s] */
  size_t posted_size;
  uint8_t posted[MR_MASS_UPDATE_BYTES];
} mr_mass_link;

/* Functions of the board. */
typedef struct mr_mass_outputs {
  void (*send)(void *context, uint8_t port, const uint8_t *packet, size_t size);
  /* Draw the number of a ticket; modules draw different ones. */
  uint64_t (*draw)(void *context, uint64_t boot, uint32_t draw);
  void *context;
} mr_mass_outputs;

/* State of a module. The first part is set by the functions below, the second by a step. */
typedef struct mr_mass_agent {
  uint64_t boot; /* a random number from 1 on */
  double resend, give_up, heartbeat; /* [s]; no heartbeat: INFINITY */
  mr_mass_outputs outputs;
  mr_mass_posture posture;
  double v[MR_MASS_MAX_JOINTS];
  bool is_free[MR_MASS_MAX_JOINTS]; /* joints that can move */
  uint8_t contact_count, contact_body;
  double contacts[MR_MASS_MAX_CONTACTS][MR_MASS_CONTACT];
  bool has_pose; /* whether the module is in contact: then it is a candidate */
  mr_matrix pose;
  mr_election ticket;
  bool announced; /* the neighbors were sent what follows from all this */
  mr_mass_link links[MR_MASS_MAX_PORTS];

  mr_mass_update own, whole; /* in the module's frame */
  double moment[MR_MASS_MAX_JOINTS][3]; /* first moment that a joint moves, in the world [kg m] */
  double inertia[MR_MASS_MAX_JOINTS];   /* that it moves [kg m^2, kg] */
  mr_mass_update received[MR_MASS_MAX_PORTS], out;
  bool leads;
  uint8_t leader_port; /* or MR_NO_PORT */
  uint8_t packet[MR_MASS_PACKET_BYTES];
} mr_mass_agent;

/* The posture of a module at places q of its joints that move. [rad, m] */
mr_status mr_mass_posture_of(const mr_kind *kind, const double *q, mr_mass_posture *posture);
void mr_mass_start(mr_mass_agent *agent, uint64_t boot, const mr_mass_posture *posture,
                   const mr_mass_outputs *outputs);
void mr_mass_plug(mr_mass_agent *agent, uint8_t port, mr_matrix T_here_there);
void mr_mass_unplug(mr_mass_agent *agent, uint8_t port);
/* New readings of the joints; the posture is set before. */
void mr_mass_sense(mr_mass_agent *agent, const double *v, const bool *is_free);
/* The module on the ground at a pose in the world: it takes part in the election. */
void mr_mass_contact(mr_mass_agent *agent, const double (*contacts)[MR_MASS_CONTACT], size_t count,
                     mr_matrix pose, uint8_t body);
void mr_mass_lift(mr_mass_agent *agent);
/* A step: what came in, then `mr_mass_finish`. */
mr_status mr_mass_take(mr_mass_agent *agent, uint8_t port, const uint8_t *packet, size_t size,
                       double now);
void mr_mass_finish(mr_mass_agent *agent, double now);
/* Time of the next step if nothing comes in. [s] */
double mr_mass_wake(const mr_mass_agent *agent);

/* -- the balancing law that shares the work: `Shared` of modurob/distributed/balancing/laws.py ------- */

typedef struct mr_balance {
  double rate;    /* of the approach [1/s] */
  double gravity; /* [m/s^2] */
  double braking, damping;
  double share[MR_MASS_MAX_JOINTS], inertia[MR_MASS_MAX_JOINTS], load[MR_MASS_MAX_JOINTS];
} mr_balance;

/* A joint as its drive measures it. */
typedef struct mr_balance_joint {
  double q, v, lower, upper, friction;
} mr_balance_joint;

void mr_balance_start(mr_balance *law, double rate, double gravity);
/* The place that the center shall be above: the nearest one in the support polygon of the contacts, at
 * least `margin` inside, or as deep as it gets. MR_NOT_READY without a contact in the world,
 * MR_BAD_ARGUMENT where the contacts are not in one plane or the slope is steeper than friction holds:
 * such regions need linear programs (modurob.distributed.balancing.support). [m] */
mr_status mr_balance_target(const mr_mass_agent *agent, double margin, double target[2]);
/* Choose each joint's share of the center's way to a target in the world. [m] */
void mr_balance_decide(mr_balance *law, const mr_mass_agent *agent, const double target[2]);
/* Whether a joint can move as decided. */
bool mr_balance_is_free(const mr_balance *law, uint8_t joint, const mr_balance_joint *here);
/* Torque of a joint until the next tick. [N m, N] */
double mr_balance_torque(const mr_balance *law, uint8_t joint, const mr_balance_joint *here);

#endif

/* UpdateMass and RecomputeMass of moll2006, function by function those of
 * modurob/distributed/mass/agent.py, state.py and module_body.py. */
#include "modurob/mass.h"

#include <string.h>

#define LIGHTEST 1e-12 /* [kg m^2, kg] a joint that moves less than this has no share */
#define HALF 0x80000000U
#define HAS_UPDATE 1
#define HAS_ELECTION 2
#define HAS_POSE 4
#define HAS_SUMS 8

static const uint8_t ROWS[10] = {3, 0, 1, 2, 0, 1, 2, 0, 0, 1}; /* of the numbers of a set */
static const uint8_t COLUMNS[10] = {3, 3, 3, 3, 0, 1, 2, 1, 2, 2};

/* -- poses and sets --------------------------------------------------------------------------------- */

static void product(mr_matrix a, mr_matrix b, mr_matrix result) {
  mr_matrix found;
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++)
      found[i][j] = a[i][0] * b[0][j] + a[i][1] * b[1][j] + a[i][2] * b[2][j] + a[i][3] * b[3][j];
  memcpy(result, found, sizeof found);
}

static void transposed(mr_matrix a, mr_matrix result) {
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) result[i][j] = a[j][i];
}

static void inverse(mr_matrix T, mr_matrix result) {
  for (int i = 0; i < 3; i++) {
    for (int j = 0; j < 3; j++) result[i][j] = T[j][i];
    result[i][3] = -(T[0][i] * T[0][3] + T[1][i] * T[1][3] + T[2][i] * T[2][3]);
    result[3][i] = 0;
  }
  result[3][3] = 1;
}

static void rotated(mr_matrix T, const double *x, double *result) {
  for (int i = 0; i < 3; i++) result[i] = T[i][0] * x[0] + T[i][1] * x[1] + T[i][2] * x[2];
}

static double dot(const double *x, const double *y) {
  return x[0] * y[0] + x[1] * y[1] + x[2] * y[2];
}

/* An update in frame b, in frame a. */
static void move(mr_mass_update *update, mr_matrix T_ab) {
  mr_matrix T_ba, turned;
  transposed(T_ab, turned);
  product(T_ab, update->mass, update->mass);
  product(update->mass, turned, update->mass);
  for (uint8_t k = 0; k < update->contact_count; k++) {
    double place[3], normal[3];
    rotated(T_ab, update->contacts[k], place);
    rotated(T_ab, update->contacts[k] + 3, normal);
    for (int i = 0; i < 3; i++) {
      update->contacts[k][i] = place[i] + T_ab[i][3];
      update->contacts[k][3 + i] = normal[i];
    }
  }
  inverse(T_ab, T_ba);
  if (update->has_pose) product(update->pose, T_ba, update->pose);
}

static bool is_election(const mr_election *a, const mr_election *b) {
  return a->draw == b->draw && a->number == b->number && a->holders == b->holders;
}

static void merge(mr_election *best, const mr_election *other) {
  if (best->draw == other->draw && best->number == other->number) {
    uint32_t sum = best->holders + other->holders;
    best->holders = sum < best->holders ? UINT32_MAX : sum;
  } else if (other->draw > best->draw ||
             (other->draw == best->draw && other->number > best->number)) {
    *best = *other;
  }
}

/* Add an update of the same frame; the pose stays. */
static void join(mr_mass_update *sum, const mr_mass_update *part) {
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) sum->mass[i][j] += part->mass[i][j];
  merge(&sum->election, &part->election);
  for (uint8_t k = 0; k < part->contact_count && sum->contact_count < MR_MASS_MAX_CONTACTS; k++)
    memcpy(sum->contacts[sum->contact_count++], part->contacts[k], sizeof part->contacts[k]);
  for (int k = 0; k < MR_MASS_SUMS; k++) sum->sums[k] += part->sums[k];
}

/* -- bytes -------------------------------------------------------------------------------------------- */

static double finite(mr_reader *reader) {
  double value = mr_read_f64(reader);
  if (!(value - value == 0)) reader->failed = true;
  return value;
}

static bool read_update(mr_mass_update *update, mr_reader *reader) {
  uint8_t flags = mr_read_u8(reader);
  memset(update, 0, sizeof *update);
  if (flags & ~(HAS_ELECTION | HAS_POSE | HAS_SUMS)) return false;
  for (int k = 0; k < 10; k++) {
    double value = finite(reader);
    update->mass[ROWS[k]][COLUMNS[k]] = update->mass[COLUMNS[k]][ROWS[k]] = value;
  }
  if (flags & HAS_ELECTION) {
    unsigned count;
    update->election.draw = mr_read_u32(reader);
    update->election.number = mr_read_u64(reader);
    update->election.holders = mr_read_u32(reader);
    count = mr_read_u8(reader);
    for (unsigned k = 0; k < count; k++) {
      double contact[MR_MASS_CONTACT];
      for (int i = 0; i < MR_MASS_CONTACT; i++) contact[i] = finite(reader);
      if (k >= MR_MASS_MAX_CONTACTS) continue;
      memcpy(update->contacts[k], contact, sizeof contact);
      update->contact_count = (uint8_t)(k + 1);
    }
  }
  update->has_pose = (flags & HAS_POSE) != 0;
  for (int k = 0; update->has_pose && k < 12; k++) update->pose[k / 4][k % 4] = finite(reader);
  update->pose[3][3] = 1;
  for (int k = 0; (flags & HAS_SUMS) && k < MR_MASS_SUMS; k++) update->sums[k] = finite(reader);
  return !reader->failed && reader->at == reader->size && !(update->mass[3][3] < 0);
}

static void write_update(mr_writer *writer, const mr_mass_update *update) {
  const mr_election nothing = {0, 0, 0};
  bool candidates = !is_election(&update->election, &nothing), sums = false;
  for (int k = 0; k < MR_MASS_SUMS; k++) sums = sums || update->sums[k] != 0;
  mr_write_u8(writer, (uint8_t)((candidates ? HAS_ELECTION : 0) |
                                (update->has_pose ? HAS_POSE : 0) | (sums ? HAS_SUMS : 0)));
  for (int k = 0; k < 10; k++) mr_write_f64(writer, update->mass[ROWS[k]][COLUMNS[k]]);
  if (candidates) {
    mr_write_u32(writer, update->election.draw);
    mr_write_u64(writer, update->election.number);
    mr_write_u32(writer, update->election.holders);
    mr_write_u8(writer, update->contact_count);
    for (uint8_t k = 0; k < update->contact_count; k++)
      for (int i = 0; i < MR_MASS_CONTACT; i++) mr_write_f64(writer, update->contacts[k][i]);
  }
  for (int k = 0; update->has_pose && k < 12; k++) mr_write_f64(writer, update->pose[k / 4][k % 4]);
  for (int k = 0; sums && k < MR_MASS_SUMS; k++) mr_write_f64(writer, update->sums[k]);
}

/* -- events of the module ---------------------------------------------------------------------------- */

void mr_mass_start(mr_mass_agent *agent, uint64_t boot, const mr_mass_posture *posture,
                   const mr_mass_outputs *outputs) {
  memset(agent, 0, sizeof *agent);
  agent->boot = boot;
  agent->resend = 0.01;
  agent->give_up = 0.25;
  agent->heartbeat = INFINITY;
  agent->outputs = *outputs;
  agent->posture = *posture;
  agent->leader_port = MR_NO_PORT;
  for (uint8_t k = 0; k < MR_MASS_MAX_JOINTS; k++) agent->is_free[k] = true;
}

void mr_mass_plug(mr_mass_agent *agent, uint8_t port, mr_matrix T_here_there) {
  mr_mass_link *link = &agent->links[port];
  memset(link, 0, sizeof *link);
  link->plugged = true;
  memcpy(link->T_here_there, T_here_there, sizeof(mr_matrix));
  link->newest.at = link->sent_at = link->heard_at = -INFINITY;
  agent->announced = false;
}

void mr_mass_unplug(mr_mass_agent *agent, uint8_t port) {
  agent->links[port].plugged = false;
  agent->announced = false;
}

void mr_mass_sense(mr_mass_agent *agent, const double *v, const bool *is_free) {
  for (uint8_t k = 0; k < agent->posture.joints; k++) {
    agent->v[k] = v[k];
    agent->is_free[k] = is_free[k];
  }
  agent->announced = false;
}

static void draw_ticket(mr_mass_agent *agent, uint32_t draw) {
  agent->ticket.draw = draw;
  agent->ticket.number = agent->outputs.draw(agent->outputs.context, agent->boot, draw);
  agent->ticket.holders = 1;
}

void mr_mass_contact(mr_mass_agent *agent, const double (*contacts)[MR_MASS_CONTACT], size_t count,
                     mr_matrix pose, uint8_t body) {
  if (count > MR_MASS_MAX_CONTACTS) count = MR_MASS_MAX_CONTACTS;
  agent->contact_count = (uint8_t)count;
  if (count) memcpy(agent->contacts, contacts, count * sizeof *contacts);
  memcpy(agent->pose, pose, sizeof agent->pose);
  agent->has_pose = true;
  agent->contact_body = body;
  if (!agent->ticket.draw) draw_ticket(agent, 1);
  agent->announced = false;
}

void mr_mass_lift(mr_mass_agent *agent) {
  agent->contact_count = 0;
  agent->has_pose = false;
  memset(&agent->ticket, 0, sizeof agent->ticket);
  agent->announced = false;
}

/* -- what follows from the state -------------------------------------------------------------------- */

static bool counts(const mr_mass_link *link) {
  return link->plugged && link->has_heard && !link->gone;
}

static mr_election election(const mr_mass_agent *agent) {
  mr_election best = agent->ticket;
  for (uint8_t port = 0; port < agent->posture.ports; port++)
    if (counts(&agent->links[port])) merge(&best, &agent->links[port].heard.election);
  return best;
}

/* The module's part of the sums: the joint moves the far side while the leader's side rests. */
static void add_joint(mr_mass_agent *agent, uint8_t joint, uint8_t ground, mr_matrix T_wm) {
  mr_mass_posture *posture = &agent->posture;
  bool outward = !(posture->child_bodies[joint] >> ground & 1U);
  double sign = outward ? 1.0 : -1.0, u[3], first[3], h[3], moment[3], inertia, m, pu, along = 0;
  const double *p = posture->point[joint];
  mr_matrix far;
  memset(far, 0, sizeof far);
  for (uint8_t k = 0; k < posture->bodies + posture->ports; k++) {
    bool is_port = k >= posture->bodies;
    uint8_t n = (uint8_t)(is_port ? k - posture->bodies : k);
    uint32_t bits = is_port ? posture->child_ports[joint] : posture->child_bodies[joint];
    if ((bits >> n & 1U) != outward || (is_port && !counts(&agent->links[n]))) continue;
    for (int i = 0; i < 16; i++)
      far[i / 4][i % 4] +=
          is_port ? agent->received[n].mass[i / 4][i % 4] : posture->body[n][i / 4][i % 4];
  }
  m = far[3][3];
  for (int i = 0; i < 3; i++) {
    u[i] = sign * posture->axis[joint][i];
    h[i] = far[i][3];
    first[i] = h[i] - m * p[i];
  }
  pu = dot(p, u);
  for (int i = 0; i < 3; i++) along += u[i] * dot(far[i], u);
  along += -2 * dot(h, u) * pu + m * pu * pu;
  inertia = far[0][0] + far[1][1] + far[2][2] - 2 * dot(h, p) + m * dot(p, p) - along;
  rotated(T_wm, u, h);
  if (posture->prismatic[joint]) {
    inertia = m;
    for (int i = 0; i < 3; i++) moment[i] = m * h[i];
  } else {
    rotated(T_wm, first, u);
    moment[0] = h[1] * u[2] - h[2] * u[1];
    moment[1] = h[2] * u[0] - h[0] * u[2];
    moment[2] = h[0] * u[1] - h[1] * u[0];
  }
  memcpy(agent->moment[joint], moment, sizeof moment);
  agent->inertia[joint] = inertia;
  if (agent->is_free[joint] && inertia > LIGHTEST) {
    agent->own.sums[0] += moment[0] / inertia * moment[0];
    agent->own.sums[1] += moment[0] / inertia * moment[1];
    agent->own.sums[2] += moment[1] / inertia * moment[1];
  }
  agent->own.sums[3] += moment[0] * agent->v[joint];
  agent->own.sums[4] += moment[1] * agent->v[joint];
}

static void recompute(mr_mass_agent *agent) {
  mr_mass_posture *posture = &agent->posture;
  mr_mass_update *own = &agent->own;
  mr_election best = election(agent);
  agent->leads = is_election(&best, &agent->ticket) && agent->has_pose;
  agent->leader_port = MR_NO_PORT;
  for (uint8_t k = 0; k < posture->ports; k++) {
    if (!counts(&agent->links[k])) continue;
    agent->received[k] = agent->links[k].heard;
    move(&agent->received[k], posture->port[k]);
    if (agent->leader_port == MR_NO_PORT && !agent->leads && best.draw && best.holders == 1 &&
        is_election(&agent->received[k].election, &best))
      agent->leader_port = k;
  }
  memset(own, 0, sizeof *own);
  for (uint8_t k = 0; k < posture->bodies; k++)
    for (int i = 0; i < 16; i++) own->mass[i / 4][i % 4] += posture->body[k][i / 4][i % 4];
  own->election = agent->ticket;
  own->contact_count = agent->contact_count;
  memcpy(own->contacts, agent->contacts, sizeof own->contacts);
  if (agent->leads) {
    own->has_pose = true;
    memcpy(own->pose, agent->pose, sizeof own->pose);
  } else if (agent->leader_port != MR_NO_PORT) {
    own->has_pose = agent->received[agent->leader_port].has_pose;
    memcpy(own->pose, agent->received[agent->leader_port].pose, sizeof own->pose);
  }
  for (uint8_t k = 0; own->has_pose && k < posture->joints; k++)
    add_joint(agent, k,
              agent->leads ? agent->contact_body : posture->port_body[agent->leader_port],
              own->pose);
  agent->whole = *own;
  for (uint8_t k = 0; k < posture->ports; k++)
    if (counts(&agent->links[k])) join(&agent->whole, &agent->received[k]);
}

/* The update for a neighbor: everything but what came from it. */
static void update_for(mr_mass_agent *agent, uint8_t port) {
  mr_matrix T, T_back;
  mr_mass_update *out = &agent->out;
  *out = agent->own;
  out->has_pose = false;
  for (uint8_t k = 0; k < agent->posture.ports; k++)
    if (k != port && counts(&agent->links[k])) join(out, &agent->received[k]);
  product(agent->posture.port[port], agent->links[port].T_here_there, T);
  inverse(T, T_back);
  move(out, T_back);
  if (agent->own.has_pose && port != agent->leader_port) {
    out->has_pose = true;
    product(agent->own.pose, T, out->pose);
  }
}

/* -- a step ------------------------------------------------------------------------------------------- */

mr_status mr_mass_take(mr_mass_agent *agent, uint8_t port, const uint8_t *packet, size_t size,
                       double now) {
  mr_reader reader = {packet, size, 0, false};
  uint8_t flags = mr_read_u8(&reader);
  uint64_t boot = mr_read_u64(&reader);
  uint32_t number = mr_read_u32(&reader);
  uint64_t received_boot = mr_read_u64(&reader);
  uint32_t received = mr_read_u32(&reader), ahead;
  mr_mass_link *link;
  if (reader.failed) return MR_TOO_SHORT;
  if (flags & ~HAS_UPDATE) return MR_BAD_FIELD;
  if ((flags == 0) != (reader.at == size)) return MR_BAD_LENGTH;
  if (port >= agent->posture.ports || !agent->links[port].plugged) return MR_UNKNOWN_PORT;
  link = &agent->links[port];
  if (link->gone) agent->announced = false;
  link->gone = false;
  link->heard_at = now;
  if (received_boot == agent->boot && received == link->number) {
    link->waiting = false;
  } else if (link->posted_size && !link->waiting) { /* the neighbor has yet to receive it */
    link->waiting = true;
    link->tried_at = link->sent_at;
  }
  if (!flags) return MR_OK;
  link->ack_pending = true;
  ahead = number - link->newest.number;
  if (boot == link->there && now - link->newest.at < agent->give_up &&
      !(ahead > 0 && ahead < HALF))
    return MR_OK;
  if (!read_update(&agent->out, &reader)) {
    link->ack_pending = false;
    return MR_BAD_FIELD;
  }
  link->heard = agent->out;
  link->has_heard = true;
  link->there = boot;
  link->newest.number = number;
  link->newest.at = now;
  agent->announced = false;
  return MR_OK;
}

static void send(mr_mass_agent *agent, uint8_t port, bool changed, double now) {
  mr_mass_link *link = &agent->links[port];
  uint8_t *update = agent->packet + 25;
  mr_writer body = {update, MR_MASS_UPDATE_BYTES, 0, false};
  mr_writer head = {agent->packet, 25, 0, false};
  bool idle = !link->waiting, full = true;
  if (changed) {
    update_for(agent, port);
    write_update(&body, &agent->out);
  } else {
    mr_write_bytes(&body, link->posted, link->posted_size);
  }
  if (body.at != link->posted_size || memcmp(update, link->posted, body.at) != 0) {
    memcpy(link->posted, update, body.at);
    link->posted_size = body.at;
    link->number++;
    link->waiting = true;
    link->tried_at = now;
  } else if (now >= link->sent_at + agent->heartbeat) {
    link->waiting = true;
    link->tried_at = now;
  } else if (link->waiting &&
             now >= link->tried_at + (link->gone ? agent->give_up : agent->resend)) {
    link->tried_at = now;
  } else if (link->ack_pending) {
    full = false;
  } else {
    return;
  }
  if (full) {
    link->sent_at = now;
    if (idle) link->heard_at = now;
  }
  link->ack_pending = false;
  mr_write_u8(&head, full ? HAS_UPDATE : 0);
  mr_write_u64(&head, agent->boot);
  mr_write_u32(&head, link->number);
  mr_write_u64(&head, link->there);
  mr_write_u32(&head, link->newest.number);
  agent->outputs.send(agent->outputs.context, port, agent->packet, full ? 25 + body.at : 25);
}

void mr_mass_finish(mr_mass_agent *agent, double now) {
  mr_election best;
  bool changed;
  for (uint8_t port = 0; port < agent->posture.ports; port++) {
    mr_mass_link *link = &agent->links[port];
    if (link->plugged && !link->gone && link->waiting && now >= link->heard_at + agent->give_up) {
      link->gone = true;
      agent->announced = false;
    }
  }
  best = election(agent);
  if (agent->ticket.draw && best.draw == agent->ticket.draw &&
      best.number == agent->ticket.number && best.holders > 1) { /* all who hold it draw again */
    draw_ticket(agent, agent->ticket.draw + 1);
    agent->announced = false;
  }
  changed = !agent->announced;
  if (changed) recompute(agent);
  for (uint8_t port = 0; port < agent->posture.ports; port++)
    if (agent->links[port].plugged) send(agent, port, changed, now);
  agent->announced = true;
}

double mr_mass_wake(const mr_mass_agent *agent) {
  double wake = agent->announced ? INFINITY : -INFINITY;
  for (uint8_t port = 0; port < agent->posture.ports; port++) {
    const mr_mass_link *link = &agent->links[port];
    double due = link->tried_at + (link->gone ? agent->give_up : agent->resend);
    if (!link->plugged) continue;
    if (link->waiting && due < wake) wake = due;
    if (link->waiting && !link->gone && link->heard_at + agent->give_up < wake)
      wake = link->heard_at + agent->give_up;
    if (link->sent_at + agent->heartbeat < wake) wake = link->sent_at + agent->heartbeat;
  }
  return wake;
}

/* Flat functions around the mass network in C, for tests that call them with ctypes. */
#include "modurob/mass.h"

#include <string.h>

size_t mass_size(void) { return sizeof(mr_mass_agent); }

void mass_start(mr_mass_agent *agent, uint64_t boot, double heartbeat,
                void (*send)(void *, uint8_t, const uint8_t *, size_t),
                uint64_t (*draw)(void *, uint64_t, uint32_t)) {
  const mr_mass_outputs outputs = {send, draw, NULL};
  static const mr_mass_posture nothing;
  mr_mass_start(agent, boot, &nothing, &outputs);
  agent->heartbeat = heartbeat;
}

void mass_shape(mr_mass_agent *agent, size_t ports, size_t bodies, size_t joints,
                const uint8_t *prismatic, const uint32_t *child_bodies,
                const uint32_t *child_ports, const uint8_t *port_body) {
  mr_mass_posture *posture = &agent->posture;
  posture->ports = (uint8_t)ports;
  posture->bodies = (uint8_t)bodies;
  posture->joints = (uint8_t)joints;
  for (size_t k = 0; k < joints; k++) posture->prismatic[k] = prismatic[k] != 0;
  memcpy(posture->child_bodies, child_bodies, joints * sizeof *child_bodies);
  memcpy(posture->child_ports, child_ports, joints * sizeof *child_ports);
  memcpy(posture->port_body, port_body, ports);
}

void mass_posture(mr_mass_agent *agent, const double *ports, const double *bodies,
                  const double *axis, const double *point) {
  mr_mass_posture *posture = &agent->posture;
  memcpy(posture->port, ports, posture->ports * sizeof *posture->port);
  memcpy(posture->body, bodies, posture->bodies * sizeof *posture->body);
  memcpy(posture->axis, axis, posture->joints * sizeof *posture->axis);
  memcpy(posture->point, point, posture->joints * sizeof *posture->point);
}

void mass_whole(const mr_mass_agent *agent, double *mass, double *sums, int *leads, int *port) {
  memcpy(mass, agent->whole.mass, sizeof agent->whole.mass);
  memcpy(sums, agent->whole.sums, sizeof agent->whole.sums);
  *leads = agent->leads;
  *port = agent->leader_port;
}

/* Torques of all joints for a target; rows of here are q, v, lower, upper, friction. */
void mass_balance(const mr_mass_agent *agent, double rate, double gravity, const double *target,
                  const double *here, double *torques) {
  mr_balance law;
  mr_balance_start(&law, rate, gravity);
  mr_balance_decide(&law, agent, target);
  for (uint8_t k = 0; k < agent->posture.joints; k++) {
    const double *x = here + 5 * k;
    const mr_balance_joint joint = {x[0], x[1], x[2], x[3], x[4]};
    torques[k] = mr_balance_torque(&law, k, &joint);
  }
}

/* Target of a robot with such contacts, whose frame is that of the world. */
int mass_target(const double *contacts, size_t count, const double *center, double margin,
                double *target) {
  static mr_mass_agent agent;
  memset(&agent, 0, sizeof agent);
  for (int k = 0; k < 4; k++) agent.own.pose[k][k] = 1;
  agent.own.has_pose = true;
  agent.whole.contact_count = (uint8_t)count;
  memcpy(agent.whole.contacts, contacts, count * sizeof *agent.whole.contacts);
  for (int k = 0; k < 3; k++) agent.whole.mass[k][3] = 2 * center[k];
  agent.whole.mass[3][3] = 2;
  return (int)mr_balance_target(&agent, margin, target);
}

/* Posture of a record: frames of ports, sets of mass, axes, points; bits of bodies and of ports. */
int mass_posture_of(const uint8_t *record, size_t size, const double *q, double *numbers,
                    uint32_t *bits) {
  static mr_mass_posture posture;
  static mr_kind kind;
  uint8_t id[MR_ID_SIZE];
  mr_status status = mr_record_read(record, size, id, &kind);
  if (status == MR_OK) status = mr_mass_posture_of(&kind, q, &posture);
  if (status != MR_OK) return (int)status;
  memcpy(numbers, posture.port, posture.ports * sizeof *posture.port);
  numbers += 16 * posture.ports;
  memcpy(numbers, posture.body, posture.bodies * sizeof *posture.body);
  numbers += 16 * posture.bodies;
  memcpy(numbers, posture.axis, posture.joints * sizeof *posture.axis);
  memcpy(numbers + 3 * posture.joints, posture.point, posture.joints * sizeof *posture.point);
  memcpy(bits, posture.child_bodies, posture.joints * sizeof *bits);
  memcpy(bits + posture.joints, posture.child_ports, posture.joints * sizeof *bits);
  return 0;
}

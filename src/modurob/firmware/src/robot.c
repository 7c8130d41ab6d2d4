#include "modurob/robot.h"

#include <string.h>

typedef char modules_fit_a_byte[MR_MAX_MODULES < 255 && MR_MAX_KINDS < 255 ? 1 : -1];

void mr_robot_clear(mr_robot *robot)
{
  memset(robot, 0, sizeof *robot);
}

const mr_kind *mr_robot_kind(const mr_robot *robot, int module)
{
  return &robot->kinds[robot->kind_of[module]];
}

mr_status mr_robot_add(mr_robot *robot, const uint8_t *record, size_t size, int *module)
{
  mr_kind *fresh = &robot->kinds[robot->kind_count];
  uint8_t id[MR_ID_SIZE], kind = 0;
  const mr_status status = mr_record_read(record, size, id, fresh);
  if (status != MR_OK) {
    return status;
  }
  while (kind < robot->kind_count && memcmp(&robot->kinds[kind], fresh, sizeof *fresh) != 0) {
    kind++;
  }
  if (robot->module_count == MR_MAX_MODULES || kind == MR_MAX_KINDS) {
    return MR_TOO_MANY;
  }
  if (kind == robot->kind_count) {
    robot->kind_count++;
  }
  *module = robot->module_count++;
  memcpy(robot->ids[*module], id, sizeof id);
  robot->kind_of[*module] = kind;
  return MR_OK;
}

/* The docking at a port, or -1. */
static int docking_at(const mr_robot *robot, int module, int port)
{
  for (int k = 0; k < robot->docking_count; k++) {
    const mr_docking *d = &robot->dockings[k];
    if ((d->module == module && d->port == port) ||
        (d->other == module && d->other_port == port)) {
      return k;
    }
  }
  return -1;
}

static int mates(const mr_port *a, const mr_port *b)
{
  for (int k = 0; k < a->mate_count; k++) {
    if (a->mates[k] == b->connector) {
      return 1;
    }
  }
  return 0;
}

static int allows(const mr_port *port, int turn)
{
  for (int k = 0; k < port->turn_count; k++) {
    if (port->turns[k] == turn) {
      return 1;
    }
  }
  return 0;
}

mr_status mr_robot_dock(mr_robot *robot, int module, int port, int other, int other_port, int turn)
{
  const mr_port *a, *b;
  mr_docking *made = &robot->dockings[robot->docking_count];
  if (module < 0 || other < 0 || module >= robot->module_count || other >= robot->module_count) {
    return MR_UNKNOWN_MODULE;
  }
  if (port < 0 || port >= mr_robot_kind(robot, module)->port_count || other_port < 0 ||
      other_port >= mr_robot_kind(robot, other)->port_count) {
    return MR_UNKNOWN_PORT;
  }
  if (module == other || robot->docking_count == MR_MAX_MODULES) {
    return MR_LOOP; /* a tree has fewer dockings than modules */
  }
  if (docking_at(robot, module, port) >= 0 || docking_at(robot, other, other_port) >= 0) {
    return MR_PORT_TAKEN;
  }
  a = &mr_robot_kind(robot, module)->ports[port];
  b = &mr_robot_kind(robot, other)->ports[other_port];
  if (!mates(a, b) || !mates(b, a) || !allows(a, turn) || !allows(b, turn)) {
    return MR_BAD_DOCKING;
  }
  made->module = (uint8_t)module;
  made->port = (uint8_t)port;
  made->other = (uint8_t)other;
  made->other_port = (uint8_t)other_port;
  made->turn = (uint16_t)turn;
  robot->docking_count++;
  return MR_OK;
}

mr_status mr_robot_undock(mr_robot *robot, int module, int port)
{
  const int at = docking_at(robot, module, port);
  if (at < 0) {
    return MR_UNKNOWN_PORT;
  }
  robot->docking_count--;
  memmove(&robot->dockings[at], &robot->dockings[at + 1],
          (size_t)(robot->docking_count - at) * sizeof robot->dockings[0]);
  return MR_OK;
}

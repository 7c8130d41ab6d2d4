/* Flat functions around the coordinator in C, for tests that call them with ctypes. */
#include "modurob/coordinator.h"

#include <string.h>

typedef void (*sender)(void *context, uint8_t port, const uint8_t *frame, size_t size);

static mr_coordinator coordinator;
static mr_bus_robot robot;

int coordinator_start(uint32_t boot, uint64_t beat, double heartbeat, double k0, double k1,
                      double period, sender send) {
  mr_text port;
  const mr_node_outputs outputs = {send, NULL, NULL, NULL};
  const mr_bus_robot_settings settings = {{0, 0, -9.81}, k0, k1, period};
  mr_text_set(&port, (const uint8_t *)"out", 3);
  mr_bus_robot_start(&robot, &settings);
  return mr_coordinator_start(&coordinator, boot, beat, &port, heartbeat, &outputs);
}

void coordinator_take(const uint8_t *data, size_t size, double now) {
  mr_coordinator_take(&coordinator, data, size, now);
}

void coordinator_signal(const uint8_t *data, size_t size, double now) {
  mr_coordinator_signal(&coordinator, data, size, now);
}

void coordinator_finish(double now) { mr_coordinator_finish(&coordinator, now); }
double coordinator_wake(void) { return coordinator.wake; }
uint32_t coordinator_ignored(void) { return coordinator.links.ignored; }
int coordinator_ready(void) { return coordinator.ready; }
int robot_rebuild(void) { return mr_bus_robot_rebuild(&robot, &coordinator); }
void robot_tick(double now) { mr_bus_robot_tick(&robot, &coordinator, now); }
int robot_goto(const double *q, int count, double seconds) {
  return mr_bus_robot_goto(&robot, q, count, seconds);
}
int robot_hold(void) { return mr_bus_robot_hold(&robot); }
int robot_relax(void) { return mr_bus_robot_relax(&robot); }
int robot_mode(void) { return (int)mr_bus_robot_mode(&robot); }
int robot_modules(void) { return robot.module_count; }

/* Children of the findings of a kind, 20 bytes each; their count. */
int survey_children(int kind, uint8_t *room, size_t size) {
  mr_writer writer = {room, size, 0, false};
  for (unsigned k = 0; k < coordinator.survey.count; k++)
    if (coordinator.survey.findings[k].kind == (mr_finding_kind)kind)
      mr_write_address(&writer, &coordinator.survey.findings[k].child);
  return writer.failed ? -1 : (int)(writer.at / MR_BUS_ADDRESS_BYTES);
}

size_t robot_gains(int module, uint8_t *room) {
  if (robot.modules[module].is_silent || robot.modules[module].joint_count == 0) return 0;
  return mr_bus_robot_gains(&robot, &robot.modules[module], room);
}

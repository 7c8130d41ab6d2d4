/* The coordinator of the bus as a process. It holds the robot where its modules were found, and
 * answers with the modules of the robot whenever these change. */
#include "modurob/coordinator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "process.h"

#define ADDRESS_TEXT 64 /* characters of a module in an answer */

static struct {
  mr_coordinator coordinator;
  mr_bus_robot robot;
  double due, period; /* of the clock [s] */
  char told[2 * ADDRESS_TEXT * MR_MAX_MODULES + 256];
} self;

static double positive(const char *settings, const char *key) {
  double value = process_number(settings, key);
  if (!(value > 0 && value < INFINITY)) process_fail("heartbeat, period, k0 and k1 are positive");
  return value;
}

static void set_up(const char *line) {
  static mr_text port;
  const mr_node_outputs outputs = {process_send, NULL, NULL, NULL};
  const char *gravity = json_get(line, "gravity"), *beat = json_get(line, "beat");
  mr_bus_robot_settings settings;
  for (size_t k = 0; k < 3; k++) {
    const char *value = json_item(gravity, k);
    if (!value) process_fail("the settings have no gravity");
    settings.gravity[k] = (mr_real)strtod(value, NULL);
  }
  settings.k0 = (mr_real)positive(line, "k0");
  settings.k1 = (mr_real)positive(line, "k1");
  self.period = positive(line, "period");
  settings.sample_time = (mr_real)process_number(line, "sample_time");
  port = process_text(json_item(json_get(line, "ports"), 0));
  mr_bus_robot_start(&self.robot, &settings);
  if (!beat || mr_coordinator_start(&self.coordinator, (uint32_t)process_drawn(NULL),
                                    strtoull(beat, NULL, 10), &port, positive(line, "heartbeat"),
                                    &outputs) != MR_OK)
    process_fail("the settings have no beat");
  self.due = process_start(line, self.coordinator.links.ports, 1);
}

static void take(uint8_t port, const uint8_t *payload, size_t size, double now) {
  (void)port;
  mr_coordinator_take(&self.coordinator, payload, size, now);
}

static void signal_in(const uint8_t *signal, size_t size, double now) {
  mr_coordinator_signal(&self.coordinator, signal, size, now);
}

/* Write modules that answer, or those that are silent, as [[id, boot], ...]. */
static size_t write_modules(char *line, bool silent) {
  size_t size = 0;
  for (uint8_t k = 0; k < self.robot.module_count; k++) {
    const mr_robot_module *module = &self.robot.modules[k];
    if (module->is_silent != silent) continue;
    size += (size_t)sprintf(line + size, "%s[\"", size ? ", " : "");
    for (size_t j = 0; j < sizeof module->address.uid; j++)
      size += (size_t)sprintf(line + size, "%02x", module->address.uid[j]);
    size += (size_t)sprintf(line + size, "\", %lu]", (unsigned long)module->address.boot);
  }
  return size;
}

/* Tell the parent about the robot, if anything has changed. */
static void tell(void) {
  static char line[sizeof self.told];
  bool is_measured = true;
  size_t size = (size_t)sprintf(line, "{\"robot\": {\"modules\": [");
  for (uint8_t k = 0; k < self.robot.module_count; k++)
    if (self.robot.modules[k].joint_count && !self.robot.modules[k].is_measured)
      is_measured = false;
  size += write_modules(line + size, false);
  size += (size_t)sprintf(line + size, "], \"silent\": [");
  size += write_modules(line + size, true);
  size += (size_t)sprintf(line + size, "], \"left_out\": %u, \"driven\": %s}}\n",
                          (unsigned)self.robot.left_out,
                          is_measured && self.robot.has_law ? "true" : "false");
  if (strcmp(line, self.told) == 0) return;
  memcpy(self.told, line, size + 1);
  process_answer(line, size);
}

static void finish(double now) {
  mr_coordinator_finish(&self.coordinator, now);
  if (mr_bus_robot_rebuild(&self.robot, &self.coordinator) && self.robot.has_law) {
    for (uint8_t k = 0; k < self.robot.module_count; k++) {
      const mr_robot_module *module = &self.robot.modules[k];
      uint8_t gains[MR_BUS_GAINS_BYTES];
      if (module->is_silent || module->joint_count == 0) continue;
      mr_coordinator_signal(&self.coordinator, gains,
                            mr_bus_robot_gains(&self.robot, module, gains), now);
    }
    mr_coordinator_finish(&self.coordinator, now);
  }
  if (now < self.due) return;
  self.due += (1 + (double)(long)((now - self.due) / self.period)) * self.period;
  mr_bus_robot_tick(&self.robot, &self.coordinator);
  tell();
}

static double wake(void) {
  return self.due < self.coordinator.wake ? self.due : self.coordinator.wake;
}

int main(void) {
  const process_program program = {set_up, NULL, take, signal_in, finish, wake};
  return process_run(&program);
}

/* The coordinator of the bus as a process. It holds the robot where its modules were found, moves it as
 * events on standard input say, and tells its parent the tree of modules and the state of the robot. */
#include "modurob/coordinator.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "process.h"

#define FINDING_TEXT 640 /* characters of a finding in an answer, at most */
#define MODULE_TEXT 1024 /* of a module with its readings and torques */
#define STATE_S 0.05     /* between states that are told */

typedef struct text_line {
  size_t size;
  char text[FINDING_TEXT * MR_BUS_MAX_FINDINGS + MODULE_TEXT * MR_MAX_MODULES + 4096];
} text_line;

static struct {
  mr_coordinator coordinator;
  mr_bus_robot robot;
  double due, period; /* of the clock [s] */
  double told_at;     /* [s] */
  unsigned long command, missed; /* number of the last command, count of ticks left out */
  mr_status refused;             /* of that command */
  text_line tree, state, line;   /* as they were told, and one that is being written */
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

static void put(const char *format, ...) {
  text_line *line = &self.line;
  va_list values;
  int size;
  va_start(values, format);
  size = vsnprintf(line->text + line->size, sizeof line->text - line->size, format, values);
  va_end(values);
  line->size += (size_t)size;
  if (size < 0 || line->size >= sizeof line->text) process_fail("an answer is too long");
}

static void put_bytes(const uint8_t *bytes, size_t size) {
  put("\"");
  for (size_t k = 0; k < size; k++) put("%02x", bytes[k]);
  put("\"");
}

static void put_address(const mr_bus_address *address) {
  put_bytes(address->uid, sizeof address->uid);
  put(", %lu, ", (unsigned long)address->boot);
}

static void put_numbers(const double *numbers, size_t count) {
  put("[");
  for (size_t k = 0; k < count; k++) {
    if (numbers[k] - numbers[k] == 0) {
      put("%s%.17g", k ? ", " : "", numbers[k]);
    } else {
      put("%snull", k ? ", " : "");
    }
  }
  put("]");
}

/* Tell the parent a line if it differs from the last one of its kind. */
static void tell(text_line *told) {
  text_line *line = &self.line;
  put("}}\n");
  if (line->size != told->size || memcmp(line->text, told->text, line->size) != 0) {
    process_answer(line->text, line->size);
    memcpy(told->text, line->text, line->size);
    told->size = line->size;
  }
  line->size = 0;
}

/* The tree: each finding with its two ends, its turn and the name of the child. */
static void tell_tree(void) {
  put("{\"tree\": {\"built\": %lu, \"findings\": [", (unsigned long)self.robot.built);
  for (uint16_t k = 0; k < self.coordinator.survey.count; k++) {
    const mr_finding *finding = &self.coordinator.survey.findings[k];
    const mr_entry *entry = mr_coordinator_entry(&self.coordinator, &finding->child);
    put("%s[%d, ", k ? ", " : "", (int)finding->kind);
    put_address(&finding->parent);
    put_bytes(finding->port.bytes, finding->port.size);
    put(", ");
    put_address(&finding->child);
    put_bytes(finding->child_port.bytes, finding->child_port.size);
    put(", %u, ", (unsigned)finding->turn);
    put_bytes(entry ? entry->name.bytes : NULL, entry ? entry->name.size : 0);
    put("]");
  }
  put("]");
  tell(&self.tree);
}

/* The state of the robot: its motion, set points, readings and torques. */
static void tell_state(void) {
  static const char *const MODES[] = {"idle", "hold", "move", "wait", "relax"};
  mr_bus_robot *robot = &self.robot;
  const mr_bus_motion *motion = &robot->motion;
  double aims[MR_MAX_JOINTS] = {0};
  bool is_driven = robot->has_law;
  put("{\"state\": {\"command\": %lu, \"refused\": %d, \"mode\": \"%s\", \"lost\": %s, ",
      self.command, (int)self.refused, MODES[mr_bus_robot_mode(robot)],
      motion->is_lost ? "true" : "false");
  put("\"progress\": %.6g, \"cycles\": %lu, \"missed\": %lu, \"modules\": [",
      motion->is_on ? motion->done / motion->duration : 0.0,
      (unsigned long)self.coordinator.links.cycle.number, self.missed);
  for (uint8_t k = 0; k < robot->module_count; k++) {
    const mr_robot_module *module = &robot->modules[k];
    double values[2 * MR_BUS_MAX_JOINTS];
    for (uint8_t j = 0; j < module->joint_count; j++) {
      values[2 * j] = module->q[j];
      values[2 * j + 1] = module->v[j];
      if (module->joints[j] == MR_NONE) continue;
      aims[module->joints[j]] = motion->is_on && motion->has_path
                                    ? motion->reached[module->joints[j]][0]
                                    : module->set_point[j];
    }
    put("%s[", k ? ", " : "");
    put_address(&module->address);
    put("%s, ", module->is_bad ? "true" : "false");
    put_numbers(values, module->is_measured ? 2U * module->joint_count : 0);
    put(", ");
    put_numbers(module->torques, module->is_driven ? module->joint_count : 0);
    put("]");
    is_driven = is_driven && (module->joint_count == 0 || module->is_measured);
  }
  put("], \"driven\": %s, \"set_point\": ", is_driven ? "true" : "false");
  put_numbers(aims, robot->has_model ? robot->table.joint_count : 0);
  tell(&self.state);
}

/* A command of the parent: {"command": NUMBER, "goto": [q, ...], "seconds": SECONDS}, or hold, relax. */
static void take_command(const char *line) {
  const char *number = json_get(line, "command"), *places = json_get(line, "goto");
  double q[MR_MAX_JOINTS];
  int count = 0;
  if (!number) return;
  self.command = strtoul(number, NULL, 10);
  self.refused = MR_BAD_ARGUMENT;
  if (places) {
    const char *place;
    while (count < MR_MAX_JOINTS && (place = json_item(places, (size_t)count)) != NULL)
      q[count++] = strtod(place, NULL);
    self.refused = mr_bus_robot_goto(&self.robot, q, count, process_number(line, "seconds"));
  } else if (json_get(line, "hold")) {
    self.refused = mr_bus_robot_hold(&self.robot);
  } else if (json_get(line, "relax")) {
    self.refused = mr_bus_robot_relax(&self.robot);
  }
  self.told_at = -INFINITY;
}

static void finish(double now) {
  mr_coordinator_finish(&self.coordinator, now);
  if (mr_bus_robot_rebuild(&self.robot, &self.coordinator)) {
    for (uint8_t k = 0; self.robot.has_law && k < self.robot.module_count; k++) {
      const mr_robot_module *module = &self.robot.modules[k];
      uint8_t gains[MR_BUS_GAINS_BYTES];
      if (module->is_silent || module->joint_count == 0) continue;
      mr_coordinator_signal(&self.coordinator, gains,
                            mr_bus_robot_gains(&self.robot, module, gains), now);
    }
    mr_coordinator_finish(&self.coordinator, now);
    tell_tree();
    self.told_at = -INFINITY;
  }
  if (now >= self.due) {
    const double late = (double)(unsigned long)((now - self.due) / self.period);
    self.missed += (unsigned long)late;
    self.due += (1 + late) * self.period;
    mr_bus_robot_tick(&self.robot, &self.coordinator, now);
  }
  if (now - self.told_at < STATE_S) return;
  self.told_at = now;
  tell_state();
}

static double wake(void) {
  return self.due < self.coordinator.wake ? self.due : self.coordinator.wake;
}

int main(void) {
  const process_program program = {set_up, NULL, take, signal_in, take_command, finish, wake};
  return process_run(&program);
}

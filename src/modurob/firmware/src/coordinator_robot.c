/* The robot of a survey, and torques for its joints: the rules of assembly.py, builder.py and
 * operation.py in modurob/distributed/bus, for computed torque. */
#include "modurob/coordinator.h"

#include <string.h>

#include "bus_links.h"
#include "modurob/crc.h"

#define LARGEST_READING 1e6 /* [rad, m, rad/s, m/s] */
#define STALE_S 0.1         /* age of a reading beyond which a motion waits, ... */
#define STALE_PERIODS 50    /* ... and the same in periods of the loop */
#define HOLD_RATE MR_C(10.0) /* of joints that modules hold by themselves [rad/s] */

void mr_bus_robot_start(mr_bus_robot *robot, const mr_bus_robot_settings *settings) {
  memset(robot, 0, sizeof *robot);
  robot->settings = *settings;
  robot->motion.ticked = -INFINITY;
}

/* -- the body ---------------------------------------------------------------------------------------- */

static mr_robot_module *module_at(mr_bus_robot *robot, const mr_bus_address *address) {
  for (uint8_t k = 0; k < robot->module_count; k++)
    if (mr_address_equal(&robot->modules[k].address, address)) return &robot->modules[k];
  return NULL;
}

/* The place of a port that the bus calls by a text; -1 if there is none. */
static int port_of(const mr_kind *kind, const mr_text *label) {
  char name[MR_BUS_LARGEST_TEXT + 1];
  int32_t number = 0;
  bool is_number = label->size > 0 && label->size < 10 && (label->size == 1 || label->bytes[0] != '0');
  memcpy(name, label->bytes, label->size);
  name[label->size] = '\0';
  if (strlen(name) != label->size) return -1;
  for (uint8_t k = 0; k < label->size; k++) {
    is_number = is_number && name[k] >= '0' && name[k] <= '9';
    if (is_number) number = 10 * number + (name[k] - '0');
  }
  if (is_number && mr_port_numbered(kind, number) >= 0) return mr_port_numbered(kind, number);
  return mr_port_named(kind, name);
}

/* Count of joints that move before one of the datasheet. */
static uint8_t moving_before(const mr_kind *kind, uint8_t joint) {
  uint8_t count = 0;
  for (uint8_t k = 0; k < joint; k++)
    if (kind->joints[k].type != MR_FIXED) count++;
  return count;
}

/* Put one module into the robot; false if it cannot be used. */
static bool add(mr_bus_robot *robot, mr_coordinator *coordinator, const mr_finding *finding) {
  const mr_entry *entry = mr_coordinator_entry(coordinator, &finding->child);
  const mr_robot_module *parent = module_at(robot, &finding->parent);
  mr_robot_module *fresh = &robot->modules[robot->module_count];
  const mr_kind *kind;
  int number;
  if (robot->module_count == MR_MAX_MODULES || !entry || !entry->has_record) return false;
  if (robot->module_count > 0 && !parent) return false; /* it is reached over one left out */
  if (mr_robot_add(&robot->robot, entry->record, entry->record_size, &number) != MR_OK)
    return false;
  kind = mr_robot_kind(&robot->robot, number);
  if (memcmp(robot->robot.ids[number], finding->child.uid, MR_ID_SIZE) != 0 ||
      moving_before(kind, kind->joint_count) > MR_BUS_MAX_JOINTS ||
      (parent && mr_robot_dock(&robot->robot, (int)(parent - robot->modules),
                               port_of(mr_robot_kind(&robot->robot, (int)(parent - robot->modules)),
                                       &finding->port),
                               number, port_of(kind, &finding->child_port), finding->turn) != MR_OK)) {
    robot->robot.module_count--; /* its kind stays: it is not used */
    return false;
  }
  memset(fresh, 0, sizeof *fresh);
  fresh->measured_at = -INFINITY;
  robot->body = mr_crc32(robot->body, entry->record, entry->record_size);
  if (parent)
    robot->body = mr_crc32(robot->body,
                           (const uint8_t *)&robot->robot.dockings[robot->robot.docking_count - 1],
                           sizeof *robot->robot.dockings);
  fresh->address = finding->child;
  fresh->is_silent = finding->kind == MR_LOST;
  fresh->joint_count = moving_before(kind, kind->joint_count);
  memset(fresh->joints, MR_NONE, sizeof fresh->joints);
  robot->module_count++;
  return true;
}

/* Numbers of the table's joints in their modules, each by its place among those that move. */
static void number_joints(mr_bus_robot *robot) {
  for (uint8_t j = 0; j < robot->table.joint_count; j++) {
    const mr_part *part = &robot->table.parts[robot->table.moved[j]];
    const mr_kind *kind = mr_robot_kind(&robot->robot, part->module);
    robot->modules[part->module].joints[moving_before(kind, part->joint)] = j;
  }
}

static bool has_springs(const mr_bus_robot *robot) {
  for (uint8_t k = 0; k < robot->module_count; k++) {
    const mr_kind *kind = mr_robot_kind(&robot->robot, k);
    for (uint8_t j = 0; j < kind->joint_count; j++)
      if (kind->joints[j].is_elastic) return true;
  }
  return false;
}

/* Take over readings and set points of modules that were in the robot before, by their ids. */
static void carry(mr_bus_robot *robot) {
  for (uint8_t k = 0; k < robot->module_count; k++) {
    mr_robot_module *module = &robot->modules[k];
    for (uint8_t j = 0; j < robot->before_count; j++) {
      const mr_robot_module *old = &robot->before[j];
      if (memcmp(old->address.uid, module->address.uid, sizeof old->address.uid) != 0 ||
          old->joint_count != module->joint_count)
        continue;
      memcpy(module->set_point, old->set_point, sizeof module->set_point);
      memcpy(module->has_set_point, old->has_set_point, sizeof module->has_set_point);
      memcpy(module->q, old->q, sizeof module->q);
      module->is_measured = old->is_measured;
      if (old->address.boot == module->address.boot) module->measured_at = old->measured_at;
    }
  }
}

/* Diagonal of the mass matrix at the last readings. */
static void find_inertia(mr_bus_robot *robot) {
  mr_real q[MR_MAX_JOINTS] = {0}, M[MR_MAX_JOINTS * MR_MAX_JOINTS];
  const int n = robot->table.joint_count;
  for (uint8_t k = 0; k < robot->module_count; k++)
    for (uint8_t j = 0; j < robot->modules[k].joint_count; j++)
      if (robot->modules[k].is_measured && robot->modules[k].joints[j] != MR_NONE)
        q[robot->modules[k].joints[j]] = (mr_real)robot->modules[k].q[j];
  mr_mass_matrix(&robot->table, &robot->work, q, M);
  for (int j = 0; j < n; j++) robot->inertia[j] = M[j * n + j];
}

size_t mr_bus_robot_gains(const mr_bus_robot *robot, const mr_robot_module *module,
                          uint8_t data[MR_BUS_GAINS_BYTES]) {
  mr_writer writer = {data, MR_BUS_GAINS_BYTES, 0, false};
  mr_write_u8(&writer, MR_BUS_HOLD);
  mr_write_address(&writer, &module->address);
  for (uint8_t j = 0; j < module->joint_count; j++) {
    const uint8_t at = module->joints[j];
    const mr_real inertia = at == MR_NONE ? 0 : robot->inertia[at];
    const mr_real friction = at == MR_NONE ? 0 : robot->table.rows[at + 1].viscous;
    mr_write_f64(&writer, (double)(HOLD_RATE * (HOLD_RATE * inertia + friction)));
    mr_write_f64(&writer, (double)(2 * HOLD_RATE * inertia));
    mr_write_f64(&writer, (double)friction);
  }
  return writer.at;
}

static void build(mr_bus_robot *robot, mr_coordinator *coordinator) {
  const mr_survey *survey = &coordinator->survey;
  mr_options options = mr_default_options;
  const uint32_t body = robot->body;
  memcpy(robot->before, robot->modules, sizeof robot->before);
  robot->before_count = robot->module_count;
  robot->module_count = robot->left_out = 0;
  robot->has_model = robot->has_law = false;
  robot->body = 0;
  mr_robot_clear(&robot->robot);
  for (uint16_t k = 0; k < survey->count; k++)
    if (survey->findings[k].kind == MR_RING) return; /* a robot is a tree */
  for (int part = 0; part < 2; part++)
    for (uint16_t k = 0; k < survey->count; k++)
      if (survey->findings[k].kind == (part ? MR_LOST : MR_ATTACHED) &&
          !add(robot, coordinator, &survey->findings[k]))
        robot->left_out++;
  if (robot->module_count == 0) return;
  carry(robot);
  if (robot->body != body) robot->motion.has_path = false; /* laid anew from where the joints are */
  options.physical = 1;
  memcpy(options.gravity, robot->settings.gravity, sizeof options.gravity);
  if (mr_table_build(&robot->robot, &options, &robot->table) != MR_OK) return;
  robot->has_model = true;
  number_joints(robot);
  robot->has_law = robot->table.joint_count > 0 && !has_springs(robot) && !survey->is_cut;
  for (int k = 0; k < MR_MAX_JOINTS; k++) {
    robot->law.k0[k] = robot->settings.k0;
    robot->law.k1[k] = robot->settings.k1;
  }
  find_inertia(robot);
  mr_linearization_init(&robot->law.inverse, &robot->table, &robot->work,
                        robot->settings.sample_time);
}

bool mr_bus_robot_rebuild(mr_bus_robot *robot, mr_coordinator *coordinator) {
  if (!coordinator->ready || (robot->built > 0 && robot->surveys == coordinator->surveys &&
                              robot->records == coordinator->records))
    return false;
  robot->surveys = coordinator->surveys;
  robot->records = coordinator->records;
  robot->built++;
  build(robot, coordinator);
  return true;
}

/* -- the clocked loop -------------------------------------------------------------------------------- */

static bool is_usable(const mr_entry *entry, uint8_t joint_count) {
  if (entry->value_count != 2 * joint_count) return false;
  for (uint8_t k = 0; k < entry->value_count; k++)
    if (!(entry->values[k] >= -LARGEST_READING && entry->values[k] <= LARGEST_READING)) return false;
  return true;
}

/* Take the newest reading of a module; what cannot be used leaves the last good one, at rest. */
static void read_module(mr_robot_module *module, const mr_entry *entry) {
  module->is_bad = false;
  if (!entry || !(entry->sensed.at > -INFINITY)) return;
  module->is_bad = !is_usable(entry, module->joint_count);
  for (uint8_t k = 0; k < module->joint_count; k++) {
    if (!module->is_bad) module->q[k] = entry->values[2 * k];
    module->v[k] = module->is_bad || module->is_silent ? 0 : entry->values[2 * k + 1];
  }
  if (module->is_bad) return;
  module->is_measured = true;
  module->measured_at = entry->sensed.at;
}

double mr_within_limits(const mr_kind *kind, uint8_t place, double q) {
  for (uint8_t k = 0; k < kind->joint_count; k++) {
    const mr_joint *joint = &kind->joints[k];
    if (joint->type == MR_FIXED || place-- > 0) continue;
    if (joint->has_upper && q > (double)joint->upper) q = (double)joint->upper;
    if (joint->has_lower && q < (double)joint->lower) q = (double)joint->lower;
    break;
  }
  return q;
}

void mr_bus_robot_hold_here(mr_bus_robot *robot) {
  for (uint8_t k = 0; k < robot->module_count; k++) {
    mr_robot_module *module = &robot->modules[k];
    for (uint8_t j = 0; j < module->joint_count; j++) { /* noise and soft stops lead beyond limits */
      module->has_set_point[j] = module->is_measured;
      module->set_point[j] = mr_within_limits(mr_robot_kind(&robot->robot, k), j, module->q[j]);
    }
  }
}

/* Take the readings of all modules; whether a motion cannot go on now. */
static bool read_modules(mr_bus_robot *robot, mr_coordinator *coordinator, double now) {
  const double periods = STALE_PERIODS * (double)robot->settings.sample_time;
  const double stale = periods > STALE_S ? periods : STALE_S;
  bool is_hindered = false;
  for (uint8_t k = 0; k < robot->module_count; k++) {
    mr_robot_module *module = &robot->modules[k];
    module->is_driven = false;
    read_module(module, mr_coordinator_entry(coordinator, &module->address));
    if (module->is_silent || (module->joint_count && now - module->measured_at > stale))
      is_hindered = true;
    for (uint8_t j = 0; j < module->joint_count; j++) {
      if (!module->is_measured || module->has_set_point[j]) continue;
      module->set_point[j] = mr_within_limits(mr_robot_kind(&robot->robot, k), j, module->q[j]);
      module->has_set_point[j] = true;
    }
  }
  return is_hindered;
}

/* Torques of all joints, and which modules get theirs. */
static void command(mr_bus_robot *robot, mr_coordinator *coordinator, double now) {
  mr_real q[MR_MAX_JOINTS] = {0}, v[MR_MAX_JOINTS] = {0}, tau[MR_MAX_JOINTS];
  mr_reference aim;
  const bool is_hindered = read_modules(robot, coordinator, now);
  if (!robot->has_law) return;
  if (robot->is_relaxed) { /* the next motion begins where the joints are then */
    mr_bus_robot_hold_here(robot);
    robot->motion.ticked = now;
    return;
  }
  for (uint8_t k = 0; k < robot->module_count; k++) {
    const mr_robot_module *module = &robot->modules[k];
    for (uint8_t j = 0; j < module->joint_count; j++) {
      const uint8_t at = module->joints[j];
      if (at == MR_NONE || !module->is_measured) continue;
      q[at] = (mr_real)module->q[j];
      v[at] = (mr_real)module->v[j];
    }
  }
  mr_bus_robot_aim(robot, now, is_hindered, &aim);
  if (mr_computed_torque_command(&robot->law, &robot->table, &robot->work, q, v, &aim, tau) != MR_OK)
    return;
  for (uint8_t j = 0; j < robot->table.joint_count; j++)
    if (!(tau[j] - tau[j] == 0)) return; /* not finite */
  for (uint8_t k = 0; k < robot->module_count; k++) {
    mr_robot_module *module = &robot->modules[k];
    module->is_driven = module->joint_count > 0 && !module->is_silent && !module->is_bad;
    for (uint8_t j = 0; j < module->joint_count; j++) {
      const uint8_t at = module->joints[j];
      if (at != MR_NONE && !module->has_set_point[j]) module->is_driven = false;
      module->torques[j] = at == MR_NONE ? 0 : (double)tau[at];
    }
  }
}

void mr_bus_robot_tick(mr_bus_robot *robot, mr_coordinator *coordinator, double now) {
  mr_node *links = &coordinator->links;
  mr_batch_writer batch;
  const bool is_open = mr_is_open(links, 0);
  bool has_any = robot->has_model;
  command(robot, coordinator, now);
  for (uint16_t k = 0; k < MR_BUS_MAX_ENTRIES; k++) has_any |= coordinator->entries[k].is_driven;
  if (!has_any) return;
  links->cycle.number = mr_following(links->cycle.number);
  batch.port = 0;
  if (is_open) mr_batch_begin(links, &batch);
  for (uint16_t k = 0; k < coordinator->survey.count; k++) {
    const mr_finding *finding = &coordinator->survey.findings[k];
    const mr_robot_module *module = module_at(robot, &finding->child);
    mr_entry *entry = mr_coordinator_entry(coordinator, &finding->child);
    uint8_t data[1 + MR_BUS_ADDRESS_BYTES + 4 + 8 * MR_BUS_MAX_JOINTS];
    mr_writer writer = {data, sizeof data, 0, false};
    const bool is_driven = module && module->is_driven;
    const bool is_released = module && robot->is_relaxed && robot->has_law && module->joint_count > 0;
    if (finding->kind != MR_ATTACHED || !entry || !(is_driven || is_released || entry->is_driven))
      continue;
    entry->is_driven = true; /* from now on, no torque lets its motors go */
    mr_write_u8(&writer, MR_BUS_TORQUE);
    mr_write_address(&writer, &finding->child);
    mr_write_u32(&writer, links->cycle.number);
    for (uint8_t j = 0; is_driven && j < module->joint_count; j++)
      mr_write_f64(&writer, module->torques[j]);
    if (is_open) mr_batch_add(links, &batch, data, writer.at);
  }
  if (is_open) mr_batch_end(links, &batch, true);
}

/* A robot that models itself: bare metal, one loop, fixed memory.
 *
 * Messages bring records, dockings and references; the torque of every sample goes to the drive.
 */
#include "modurob/control.h"
#include "port.h"

#include <string.h>

#define PERIOD_US 1000
#define K0 MR_C(100.0) /* of position errors [1/s^2] */
#define K1 MR_C(20.0)  /* of velocity errors [1/s] */

/* First byte of a message; its content follows. Every message is answered by a status, one byte. */
enum {
  CLEAR = 1,  /* forget all modules, and leave their motors without torque */
  RECORD = 2, /* of the next module */
  DOCK = 3,   /* module, port, other, other_port: one byte each; turn: two, low byte first */
  BUILD = 4,  /* 0 for dyad joints, 1 for those of the hardware: one byte; then control begins */
  AIM = 5     /* q, v, a of all joints: 4 bytes each, float of this processor's byte order */
};

static mr_robot robot;
static mr_table table;
static mr_work work;
static mr_computed_torque law;
static mr_reference aim;

/* Motors without torque, where there are any. */
static void release(void)
{
  const mr_real tau[MR_MAX_JOINTS] = {0};
  if (table.joint_count > 0) {
    port_drive(&table, tau, NULL, NULL);
  }
}

static mr_status build(uint8_t physical)
{
  mr_options options = mr_default_options;
  mr_status status;
  release();
  options.physical = physical;
  options.stiff = 1; /* the law controls joints that have a motor */
  status = mr_table_build(&robot, &options, &table);
  if (status != MR_OK) {
    return status;
  }
  for (int k = 0; k < table.joint_count; k++) {
    law.k0[k] = K0;
    law.k1[k] = K1;
  }
  mr_linearization_init(&law.inverse, &table, &work, MR_C(1e-6) * PERIOD_US);
  port_drive(&table, NULL, aim.q, aim.v); /* stay here until a reference comes */
  memset(aim.v, 0, sizeof aim.v);
  memset(aim.a, 0, sizeof aim.a);
  return MR_OK;
}

static mr_status read_aim(const uint8_t *data, size_t size)
{
  mr_real *numbers[3] = {aim.q, aim.v, aim.a};
  float x;
  if (size != 3 * sizeof x * table.joint_count) {
    return MR_BAD_LENGTH;
  }
  for (size_t at = 0; at < size; at += sizeof x) {
    memcpy(&x, data + at, sizeof x);
    if (x - x != 0) {
      return MR_BAD_NUMBER; /* infinite or NaN, and so would be the torques */
    }
  }
  for (int part = 0; part < 3; part++) {
    for (int k = 0; k < table.joint_count; k++) {
      memcpy(&x, data, sizeof x);
      numbers[part][k] = (mr_real)x;
      data += sizeof x;
    }
  }
  return MR_OK;
}

static mr_status handle(const uint8_t *message, size_t size)
{
  const uint8_t *data = message + 1;
  int module;
  switch (message[0]) {
  case CLEAR:
    release();
    mr_robot_clear(&robot);
    memset(&table, 0, sizeof table);
    return MR_OK;
  case RECORD:
    return mr_robot_add(&robot, data, size - 1, &module);
  case DOCK:
    return size != 7 ? MR_BAD_LENGTH
                     : mr_robot_dock(&robot, data[0], data[1], data[2], data[3],
                                     data[4] | data[5] << 8);
  case BUILD:
    return size != 2 ? MR_BAD_LENGTH : build(data[0]);
  case AIM:
    return read_aim(data, size - 1);
  default:
    return MR_BAD_ARGUMENT;
  }
}

static void control(void)
{
  mr_real q[MR_MAX_JOINTS], v[MR_MAX_JOINTS], tau[MR_MAX_JOINTS];
  port_drive(&table, NULL, q, v);
  if (mr_computed_torque_command(&law, &table, &work, q, v, &aim, tau) == MR_OK) {
    port_drive(&table, tau, NULL, NULL);
  } else {
    release();
  }
}

int main(void)
{
  static uint8_t message[PORT_MESSAGE_SIZE];
  uint32_t late, last = port_clock();
  uint8_t answer = 0;
  size_t size = 0;
  for (;;) {
    size = port_exchange(&answer, size > 0, message);
    if (size > 0) {
      answer = (uint8_t)handle(message, size);
    }
    late = port_clock() - last;
    if (table.joint_count > 0 && late >= PERIOD_US) {
      last += late - late % PERIOD_US; /* samples that a rebuild took are left out */
      control();
    }
  }
}

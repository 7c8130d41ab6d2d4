/* Calls functions of the runtime, each between two calls of the drive, where boards/qemu.c counts.
 *
 * tools/firmware_boards.py builds it in the place of boards/main.c, whose handling of messages it uses.
 */
#define main robot_main
#include "main.c"
#undef main

#include "modurob/ekf.h"

static mr_ekf ekf;
static mr_ekf_work ekf_work;
static mr_pid pid;
static mr_pd_gravity pd;
static mr_real q[MR_MAX_JOINTS], v[MR_MAX_JOINTS], x[MR_MAX_JOINTS], y[MR_MAX_JOINTS];
static mr_real M[MR_MAX_JOINTS * MR_MAX_JOINTS];

static void wait_for_table(void)
{
  static uint8_t message[PORT_MESSAGE_SIZE];
  size_t size = 1;
  uint8_t answer = 0;
  while (size > 0) {
    size = port_exchange(&answer, size > 0, message);
    answer = size > 0 ? (uint8_t)handle(message, size) : 0;
  }
}

#define MEASURE(call)                \
  port_drive(&table, NULL, q, v);    \
  call;                              \
  port_drive(&table, y, NULL, NULL);

int main(void)
{
  wait_for_table();
  for (int k = 0; k < table.joint_count; k++) {
    pd.kp[k] = pid.kp[k] = K0;
    pd.kd[k] = pid.kd[k] = K1;
    pid.ki[k] = 1;
  }
  mr_ekf_init(&ekf, &table, MR_C(1e-6) * PERIOD_US);
  MEASURE(mr_inverse_dynamics(&table, &work, q, v, x, y))
  MEASURE(mr_forward_dynamics(&table, &work, q, v, x, y))
  MEASURE(mr_mass_matrix(&table, &work, q, M))
  MEASURE((void)mr_computed_torque_command(&law, &table, &work, q, v, &aim, y))
  MEASURE((void)mr_pd_gravity_command(&pd, &table, &work, q, v, &aim, y))
  MEASURE(mr_pid_output(&pid, table.joint_count, MR_C(1e-3), q, v, &aim, y))
  MEASURE((void)mr_ekf_predict(&ekf, &table, &ekf_work, x))
  MEASURE((void)mr_ekf_correct(&ekf, &table, &ekf_work, q))
  for (;;) {
    port_drive(&table, NULL, q, v); /* ends with the last state */
  }
}

/* The chip's library that the port of docs/guide/porting.md calls, with the files of boards/qemu.c.
 *
 * One joint in each module. An event is the kind of a message or STEP, and the time.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { STEP = 0x80, BURST = 100 };

volatile uint32_t timer_us;

static FILE *messages, *answers, *states, *torques, *events;
static float row[2][JOINTS];

static void note(uint32_t event)
{
  const uint32_t line[3] = {event, timer_us, 0};
  fwrite(line, sizeof line, 1, events);
}

static void open_all(void)
{
  messages = fopen("messages.bin", "rb");
  states = fopen("states.bin", "rb");
  answers = fopen("answers.bin", "wb");
  torques = fopen("torques.bin", "wb");
  events = fopen("events.bin", "wb");
}

int uart_get(void)
{
  static unsigned count, size, kind, given;
  int byte = -1;
  if (messages == NULL) {
    open_all();
  }
  if (++given % BURST) { /* bytes come in bursts */
    byte = fgetc(messages);
  }
  if (byte < 0) {
    timer_us += 400; /* one turn of the loop */
    return -1;
  }
  if (count < 2) {
    size += (unsigned)byte << 8 * count;
  } else if (count == 2) {
    kind = (unsigned)byte;
  }
  if (++count >= 2 && count == size + 2) {
    note(kind);
    count = size = 0;
  }
  return byte;
}

void uart_put(uint8_t byte)
{
  fputc(byte, answers);
}

float encoder_angle(int module, int joint)
{
  (void)joint;
  if (module == 0) {
    if (fread(row, sizeof row, 1, states) != 1) {
      exit(0);
    }
    note(STEP);
  }
  return row[0][module];
}

float encoder_rate(int module, int joint)
{
  (void)joint;
  return row[1][module];
}

void motor_torque(int module, int joint, float torque)
{
  (void)module;
  (void)joint;
  fwrite(&torque, sizeof torque, 1, torques);
}

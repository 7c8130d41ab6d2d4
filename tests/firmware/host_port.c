/* The port of boards/main.c on the machine at hand: the files of boards/qemu.c without measurements. */
#include <stdio.h>
#include <stdlib.h>

#include "port.h"

enum { STEP = 0x80 };

static FILE *messages, *states, *answers, *torques, *events;

static void note(uint32_t event)
{
  const uint32_t line[3] = {event, 0, 0};
  fwrite(line, sizeof line, 1, events);
}

uint32_t port_clock(void)
{
  static uint32_t now;
  return now += 400;
}

size_t port_exchange(const uint8_t *answer, size_t size, uint8_t message[PORT_MESSAGE_SIZE])
{
  uint8_t header[2];
  size_t length;
  if (messages == NULL) {
    messages = fopen("messages.bin", "rb");
    states = fopen("states.bin", "rb");
    answers = fopen("answers.bin", "wb");
    torques = fopen("torques.bin", "wb");
    events = fopen("events.bin", "wb");
  }
  fwrite(answer, 1, size, answers);
  if (fread(header, sizeof header, 1, messages) != 1) {
    return 0;
  }
  length = header[0] | (size_t)header[1] << 8;
  if (fread(message, length, 1, messages) != 1) {
    exit(1);
  }
  note(message[0]);
  return length;
}

void port_drive(const mr_table *table, const mr_real *tau, mr_real *q, mr_real *v)
{
  const size_t count = (size_t)table->joint_count;
  if (tau != NULL) {
    fwrite(tau, sizeof *tau, count, torques);
  }
  if (q != NULL) {
    if (fread(q, sizeof *q, count, states) != count || fread(v, sizeof *v, count, states) != count) {
      exit(0);
    }
    note(STEP);
  }
}

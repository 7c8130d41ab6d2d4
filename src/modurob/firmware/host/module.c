/* A module of the bus as a process: the C twin of modurob/distributed/child.py with a node.
 *
 * The drive is memory that the plant's process maps too (modurob/distributed/drive.py); without one,
 * torques are answers.
 */
#define _DEFAULT_SOURCE
#include "process.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "modurob/crc.h"

#define STALE_S 0.1 /* without a new reading, joints count as not measured */
#define MAILBOX_VALUES 16
#define MAILBOX_BYTES (16 + 8 * MAILBOX_VALUES)
#define SLOT_BYTES (3 * MAILBOX_BYTES) /* readings, torques, and contacts that a node does not read */

typedef struct mailbox {
  uint8_t *memory; /* NULL without one */
  uint64_t number; /* of the last write, or read */
} mailbox;

static struct {
  mr_node node;
  mailbox readings, torques;
  double last[MAILBOX_VALUES], changed_at;
  size_t last_count;
} self;

/* -- the drive --------------------------------------------------------------------------------------- */

static void mailbox_write(mailbox *box, const double *values, size_t count) {
  uint8_t data[MAILBOX_BYTES];
  mr_writer writer = {data, sizeof data, 4, false}, sum = {data, 4, 0, false};
  memset(data, 0, sizeof data);
  mr_write_u32(&writer, (uint32_t)count);
  mr_write_u64(&writer, ++box->number);
  for (size_t k = 0; k < count; k++) mr_write_f64(&writer, values[k]);
  mr_write_u32(&sum, mr_crc32(0, data, sizeof data));
  memcpy(box->memory, data, sizeof data);
}

/* Values of the last write; false if they were read already or are not whole yet. */
static bool mailbox_read(mailbox *box, double *values, size_t *count) {
  for (int tries = 0; tries < 3; tries++) {
    uint8_t data[MAILBOX_BYTES];
    mr_reader reader = {data, sizeof data, 0, false};
    uint32_t sum, found;
    uint64_t number;
    memcpy(data, box->memory, sizeof data);
    sum = mr_read_u32(&reader);
    found = mr_read_u32(&reader);
    number = mr_read_u64(&reader);
    if (number == box->number) return false;
    memset(data, 0, 4);
    if (sum != mr_crc32(0, data, sizeof data) || found > MAILBOX_VALUES) continue;
    box->number = number;
    *count = found;
    for (uint32_t k = 0; k < found; k++) values[k] = mr_read_f64(&reader);
    return true;
  }
  return false;
}

static void open_drive(const char *drive) {
  char path[4096];
  const char *options = json_item(drive, 1), *slot = json_get(options, "slot");
  struct stat status;
  size_t offset;
  int file;
  void *memory;
  if (!slot || json_text(json_get(options, "path"), path, sizeof path) < 0)
    process_fail("the settings have no path and slot of a drive");
  file = open(path, O_RDWR);
  if (file < 0 || fstat(file, &status) != 0) process_fail("the memory of the plant cannot be opened");
  offset = SLOT_BYTES * (size_t)strtoul(slot, NULL, 10);
  if ((size_t)status.st_size < offset + SLOT_BYTES) process_fail("the plant has no such slot");
  memory = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) process_fail("the memory of the plant cannot be mapped");
  close(file);
  self.readings.memory = (uint8_t *)memory + offset;
  self.torques.memory = (uint8_t *)memory + offset + MAILBOX_BYTES;
}

static void read_drive(double now) {
  if (!self.readings.memory) return;
  if (mailbox_read(&self.readings, self.last, &self.last_count)) self.changed_at = now;
  mr_node_read(&self.node, self.last, now - self.changed_at < STALE_S ? self.last_count : 0);
}

static void write_number(char *line, size_t room, size_t *size, double value) {
  const char *special = value != value      ? "NaN"
                        : value == INFINITY ? "Infinity"
                        : value == -INFINITY ? "-Infinity"
                                             : NULL;
  int more = special ? snprintf(line + *size, room - *size, "%s", special)
                     : snprintf(line + *size, room - *size, "%.16e", value);
  *size += (size_t)more;
}

static void on_drive(void *context, const double *torques, size_t count) {
  (void)context;
  if (self.torques.memory) {
    mailbox_write(&self.torques, torques, count);
  } else {
    char line[40 * MAILBOX_VALUES];
    size_t size = (size_t)snprintf(line, sizeof line, "{\"drive\": [");
    for (size_t k = 0; k < count; k++) {
      if (k) size += (size_t)snprintf(line + size, sizeof line - size, ", ");
      write_number(line, sizeof line, &size, torques[k]);
    }
    size += (size_t)snprintf(line + size, sizeof line - size, "]}\n");
    process_answer(line, size);
  }
}

static void on_stored(void *context, const uint8_t *record, size_t size) {
  static char line[2 * MR_BUS_MAX_RECORD + 32];
  size_t at = (size_t)snprintf(line, sizeof line, "{\"stored\": \"");
  (void)context;
  for (size_t k = 0; k < size; k++) at += (size_t)snprintf(line + at, 3, "%02x", record[k]);
  at += (size_t)snprintf(line + at, sizeof line - at, "\"}\n");
  process_answer(line, at);
}

/* -- the program ------------------------------------------------------------------------------------- */

/* The 16 bytes of a decimal number. */
static void read_uid(const char *digits, uint8_t uid[16]) {
  memset(uid, 0, 16);
  if (!digits || *digits < '0' || *digits > '9') process_fail("the settings have no uid");
  for (; *digits >= '0' && *digits <= '9'; digits++) {
    unsigned carry = (unsigned)(*digits - '0');
    for (int k = 15; k >= 0; k--) {
      carry += 10U * uid[k];
      uid[k] = (uint8_t)carry;
      carry >>= 8;
    }
  }
}

static void set_up(const char *line) {
  static uint8_t record[MR_BUS_MAX_RECORD];
  static mr_text ports[MR_BUS_MAX_PORTS];
  const mr_node_outputs outputs = {process_send, on_drive, on_stored, NULL};
  const char *drive = json_get(line, "drive"), *labels = json_get(line, "ports");
  mr_node_settings settings;
  long size = json_bytes(json_get(line, "record"), record, sizeof record);
  if (size < 0) process_fail("the settings have no record");
  memset(&settings, 0, sizeof settings);
  read_uid(json_get(line, "uid"), settings.uid);
  settings.boot = (uint32_t)process_drawn(NULL);
  settings.record = record;
  settings.record_size = (size_t)size;
  settings.name = process_text(json_get(line, "name"));
  settings.heartbeat = process_number(line, "heartbeat");
  settings.ports = ports;
  while (settings.port_count < MR_BUS_MAX_PORTS && json_item(labels, settings.port_count)) {
    ports[settings.port_count] = process_text(json_item(labels, settings.port_count));
    settings.port_count++;
  }
  if (mr_node_start(&self.node, &settings, &outputs) != MR_OK)
    process_fail("the settings have no ports, or no heartbeat");
  self.changed_at = process_start(line, self.node.ports, self.node.port_count);
  if (drive && *drive == '[') open_drive(drive);
}

static void take(uint8_t port, const uint8_t *payload, size_t size, double now) {
  mr_node_take(&self.node, port, payload, size, now);
}

static void signal_in(const uint8_t *signal, size_t size, double now) {
  mr_node_signal(&self.node, signal, size, now);
}

static void finish(double now) { mr_node_finish(&self.node, now); }

static double wake(void) { return mr_node_wake(&self.node); }

int main(void) {
  const process_program program = {set_up, read_drive, take, signal_in, NULL, finish, wake};
  return process_run(&program);
}

/* A module of the bus as a process: the C twin of modurob/distributed/child.py with a node.
 *
 * Standard input brings settings and events, standard output takes the socket's address and the
 * answers; both are lines of JSON. The drive is memory that the plant's process maps too
 * (modurob/distributed/drive.py); without one, torques are answers. The process ends with its
 * standard input, or when its parent has changed.
 */
#define _DEFAULT_SOURCE
#include "json.h"
#include "modurob/bus.h"
#include "modurob/crc.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#define LONGEST_WAIT_S 1.0   /* in one go; then comes a look at the parent */
#define MOST_AT_ONCE 256     /* datagrams read in one go */
#define BUFFER_BYTES (1 << 20) /* asked of the system */
#define STALE_S 0.1          /* without a new reading, joints count as not measured */
#define MAILBOX_VALUES 16
#define MAILBOX_BYTES (16 + 8 * MAILBOX_VALUES)
#define SLOT_BYTES (3 * MAILBOX_BYTES) /* readings, torques, and contacts that a node does not read */
#define LARGEST_LINE (4 << 20)
#define LARGEST_KEY 256
#define LOOPBACK "127.0.0.1"

typedef struct mailbox {
  uint8_t *memory; /* NULL without one */
  uint64_t number; /* of the last write, or read */
} mailbox;

static struct {
  mr_node node;
  mr_endpoint endpoint;
  int sock;
  unsigned own_port; /* of the socket */
  uint8_t key[LARGEST_KEY];
  size_t key_size;
  double loss;
  uint64_t seed;
  bool drops; /* the datagram that is being delivered */
  double now;
  mailbox readings, torques;
  double last[MAILBOX_VALUES], changed_at;
  size_t last_count;
  char input[LARGEST_LINE];
  size_t input_size;
} self;

static double monotonic(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void answer(const char *text, size_t size) {
  while (size) {
    ssize_t written = write(STDOUT_FILENO, text, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) exit(0); /* the parent has ended */
    text += written;
    size -= (size_t)written;
  }
}

static void fail(const char *reason) {
  char line[512];
  int size = snprintf(line, sizeof line, "{\"error\": \"%s\"}\n", reason);
  answer(line, (size_t)size);
  exit(1);
}

static uint64_t drawn(void *context) {
  static int file = -1;
  uint64_t number = 0;
  (void)context;
  if (file < 0) file = open("/dev/urandom", O_RDONLY);
  if (file < 0 || read(file, &number, sizeof number) != sizeof number)
    fail("no random numbers from /dev/urandom");
  return number ? number : 1;
}

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
    fail("the settings have no path and slot of a drive");
  file = open(path, O_RDWR);
  if (file < 0 || fstat(file, &status) != 0) fail("the memory of the plant cannot be opened");
  offset = SLOT_BYTES * (size_t)strtoul(slot, NULL, 10);
  if ((size_t)status.st_size < offset + SLOT_BYTES) fail("the plant has no such slot");
  memory = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) fail("the memory of the plant cannot be mapped");
  close(file);
  self.readings.memory = (uint8_t *)memory + offset;
  self.torques.memory = (uint8_t *)memory + offset + MAILBOX_BYTES;
}

static void read_drive(void) {
  if (!self.readings.memory) return;
  if (mailbox_read(&self.readings, self.last, &self.last_count)) self.changed_at = self.now;
  mr_node_read(&self.node, self.last, self.now - self.changed_at < STALE_S ? self.last_count : 0);
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
    answer(line, size);
  }
}

static void on_stored(void *context, const uint8_t *record, size_t size) {
  static char line[2 * MR_BUS_MAX_RECORD + 32];
  size_t at = (size_t)snprintf(line, sizeof line, "{\"stored\": \"");
  (void)context;
  for (size_t k = 0; k < size; k++) at += (size_t)snprintf(line + at, 3, "%02x", record[k]);
  at += (size_t)snprintf(line + at, sizeof line - at, "\"}\n");
  answer(line, at);
}

/* -- the socket -------------------------------------------------------------------------------------- */

static uint64_t address_number(const struct sockaddr_in *address) {
  return (uint64_t)ntohl(address->sin_addr.s_addr) << 16 | ntohs(address->sin_port);
}

static void on_datagram_out(void *context, uint64_t to, const uint8_t *data, size_t size) {
  struct sockaddr_in address;
  (void)context;
  memset(&address, 0, sizeof address);
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl((uint32_t)(to >> 16));
  address.sin_port = htons((uint16_t)(to & 0xffff));
  (void)!sendto(self.sock, data, size, 0, (struct sockaddr *)&address, sizeof address);
}

static void on_payload(void *context, uint8_t port, const uint8_t *payload, size_t size) {
  (void)context;
  if (!self.drops) mr_node_take(&self.node, port, payload, size, self.now);
}

static void on_frame(void *context, uint8_t port, const uint8_t *frame, size_t size) {
  (void)context;
  mr_endpoint_send(&self.endpoint, port, frame, size);
}

static void open_socket(void) {
  struct sockaddr_in address;
  socklen_t size = sizeof address;
  int buffer = BUFFER_BYTES;
  self.sock = socket(AF_INET, SOCK_DGRAM, 0);
  memset(&address, 0, sizeof address);
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = inet_addr(LOOPBACK);
  if (self.sock < 0 || bind(self.sock, (struct sockaddr *)&address, sizeof address) != 0 ||
      getsockname(self.sock, (struct sockaddr *)&address, &size) != 0 ||
      fcntl(self.sock, F_SETFL, O_NONBLOCK) != 0)
    fail("no socket at " LOOPBACK);
  setsockopt(self.sock, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
  self.own_port = ntohs(address.sin_port);
}

/* A chance from 0 to 1 (xorshift, Marsaglia 2003). */
static double chance(void) {
  self.seed ^= self.seed << 13;
  self.seed ^= self.seed >> 7;
  self.seed ^= self.seed << 17;
  return (double)(self.seed >> 11) / 9007199254740992.0;
}

static void receive(void) {
  static uint8_t data[MR_BUS_LARGEST_DATAGRAM + 1];
  for (int k = 0; k < MOST_AT_ONCE; k++) {
    struct sockaddr_in source;
    socklen_t size = sizeof source;
    ssize_t found =
        recvfrom(self.sock, data, sizeof data, 0, (struct sockaddr *)&source, &size);
    if (found < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (found < 0) continue; /* an earlier datagram did not arrive */
    self.drops = self.loss > 0 && chance() < self.loss;
    mr_endpoint_receive(&self.endpoint, address_number(&source), data, (size_t)found, self.now);
  }
}

/* -- settings and events ----------------------------------------------------------------------------- */

static mr_text text_of(const char *value) {
  char bytes[MR_BUS_LARGEST_TEXT + 1];
  mr_text text = {0, {0}};
  long size = json_text(value, bytes, sizeof bytes);
  if (size < 0 || mr_text_set(&text, (const uint8_t *)bytes, (size_t)size) != MR_OK)
    fail("a name or port is no text of up to 64 bytes");
  return text;
}

/* Python's text of an end: only labels whose text is themselves in quotes come here. */
static void end_text(char *text, size_t room, const char *host, unsigned number,
                     const mr_text *label) {
  for (uint8_t k = 0; k < label->size; k++)
    if (label->bytes[k] < 0x20 || label->bytes[k] > 0x7e || strchr("'\\", label->bytes[k]))
      fail("native modules need port labels of plain ASCII");
  snprintf(text, room, "(('%s', %u), '%.*s')", host, number, (int)label->size,
           (const char *)label->bytes);
}

static void plug(const char *event) {
  mr_text mine = text_of(json_get(event, "plug")), theirs = text_of(json_get(event, "port"));
  uint8_t port = mr_find_label(self.node.ports, self.node.port_count, &mine);
  const char *address = json_get(event, "address"), *number = json_item(address, 1);
  char host[64], here[192], there[192], out[400], in[400];
  struct in_addr parsed;
  unsigned at;
  if (!number || json_text(json_item(address, 0), host, sizeof host) < 0 ||
      inet_pton(AF_INET, host, &parsed) != 1 || port == MR_NO_PORT)
    fail("an event to plug has no port of this module, or no address");
  at = (unsigned)strtoul(number, NULL, 10);
  end_text(here, sizeof here, LOOPBACK, self.own_port, &mine);
  end_text(there, sizeof there, host, at, &theirs);
  snprintf(out, sizeof out, "(%s, %s)", here, there);
  snprintf(in, sizeof in, "(%s, %s)", there, here);
  mr_endpoint_plug(&self.endpoint, port, (uint64_t)ntohl(parsed.s_addr) << 16 | (at & 0xffffU),
                   &theirs, self.key, self.key_size, out, in, self.now);
}

static void unplug(const char *value) {
  mr_text label = text_of(value);
  uint8_t port = mr_find_label(self.node.ports, self.node.port_count, &label);
  if (port != MR_NO_PORT) mr_endpoint_unplug(&self.endpoint, port);
}

static void signal_in(const char *value) {
  uint8_t signal[512];
  long size = json_bytes(value, signal, sizeof signal);
  if (size < 0) fail("a signal is no text of up to 512 bytes in hexadecimal digits");
  mr_node_signal(&self.node, signal, (size_t)size, self.now);
}

/* The 16 bytes of a decimal number. */
static void read_uid(const char *digits, uint8_t uid[16]) {
  memset(uid, 0, 16);
  if (!digits || *digits < '0' || *digits > '9') fail("the settings have no uid");
  for (; *digits >= '0' && *digits <= '9'; digits++) {
    unsigned carry = (unsigned)(*digits - '0');
    for (int k = 15; k >= 0; k--) {
      carry += 10U * uid[k];
      uid[k] = (uint8_t)carry;
      carry >>= 8;
    }
  }
}

static double number_of(const char *settings, const char *key) {
  const char *value = json_get(settings, key);
  return value ? strtod(value, NULL) : 0;
}

static void set_up(const char *line) {
  static uint8_t record[MR_BUS_MAX_RECORD];
  static mr_text ports[MR_BUS_MAX_PORTS];
  const mr_node_outputs outputs = {on_frame, on_drive, on_stored, NULL};
  const mr_endpoint_board board = {on_datagram_out, on_payload, drawn, NULL};
  const char *drive = json_get(line, "drive"), *labels = json_get(line, "ports");
  mr_node_settings settings;
  long size = json_bytes(json_get(line, "record"), record, sizeof record);
  long key_size = json_bytes(json_get(line, "key"), self.key, sizeof self.key);
  if (size < 0 || key_size < MR_BUS_LEAST_KEY) fail("the settings have no record or no key");
  memset(&settings, 0, sizeof settings);
  self.key_size = (size_t)key_size;
  self.loss = number_of(line, "loss");
  self.seed = 2 * (uint64_t)number_of(line, "seed") + 0x9e3779b97f4a7c15U;
  read_uid(json_get(line, "uid"), settings.uid);
  settings.boot = (uint32_t)drawn(NULL);
  settings.record = record;
  settings.record_size = (size_t)size;
  settings.name = text_of(json_get(line, "name"));
  settings.heartbeat = number_of(line, "heartbeat");
  settings.ports = ports;
  while (settings.port_count < MR_BUS_MAX_PORTS && json_item(labels, settings.port_count)) {
    ports[settings.port_count] = text_of(json_item(labels, settings.port_count));
    settings.port_count++;
  }
  if (mr_node_start(&self.node, &settings, &outputs) != MR_OK)
    fail("the settings have no ports, or no heartbeat");
  mr_endpoint_start(&self.endpoint, self.node.ports, self.node.port_count, &board);
  self.changed_at = self.now = monotonic();
  if (drive && *drive == '[') open_drive(drive);
}

/* Read what has come; false at the end of standard input. */
static bool read_input(void) {
  ssize_t found = read(STDIN_FILENO, self.input + self.input_size,
                       sizeof self.input - 1 - self.input_size);
  if (found < 0 && errno == EINTR) return true;
  if (found <= 0) return false;
  self.input_size += (size_t)found;
  return true;
}

/* Call a function with each whole line, up to so many. */
static void each_line(void (*use)(const char *line), int most) {
  size_t at = 0;
  char *end;
  while (most-- && (end = memchr(self.input + at, '\n', self.input_size - at)) != NULL) {
    *end = '\0';
    use(self.input + at);
    at = (size_t)(end + 1 - self.input);
  }
  self.input_size -= at;
  memmove(self.input, self.input + at, self.input_size);
}

static void on_event(const char *line) {
  if (json_get(line, "plug")) plug(line);
  if (json_get(line, "unplug")) unplug(json_get(line, "unplug"));
  if (json_get(line, "signal")) signal_in(json_get(line, "signal"));
}

int main(void) {
  pid_t parent = getppid();
  char line[64];
  while (!memchr(self.input, '\n', self.input_size))
    if (!read_input()) return 0;
  open_socket();
  each_line(set_up, 1);
  snprintf(line, sizeof line, "{\"address\": [\"" LOOPBACK "\", %u]}\n", self.own_port);
  answer(line, strlen(line));
#ifdef __linux__
  prctl(PR_SET_PDEATHSIG, SIGCONT); /* a stopped process goes on, and ends, with its parent */
#endif
  while (getppid() == parent) {
    if (!memchr(self.input, '\n', self.input_size)) {
      double wait = mr_node_wake(&self.node) - monotonic();
      struct timeval time;
      fd_set ready;
      wait = wait < 0 ? 0 : wait > LONGEST_WAIT_S ? LONGEST_WAIT_S : wait;
      time.tv_sec = (time_t)wait;
      time.tv_usec = (suseconds_t)(1e6 * (wait - (double)time.tv_sec));
      FD_ZERO(&ready);
      FD_SET(STDIN_FILENO, &ready);
      FD_SET(self.sock, &ready);
      if (select(self.sock + 1, &ready, NULL, NULL, &time) < 0) FD_ZERO(&ready);
      if (FD_ISSET(STDIN_FILENO, &ready) && !read_input()) return 0;
    }
    self.now = monotonic();
    read_drive();
    receive();
    each_line(on_event, -1);
    mr_node_finish(&self.node, self.now);
    mr_endpoint_flush(&self.endpoint);
  }
  return 0;
}

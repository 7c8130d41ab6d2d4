#define _DEFAULT_SOURCE
#include "process.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#define LONGEST_WAIT_S 1.0   /* in one go; then comes a look at the parent */
#define MOST_AT_ONCE 256     /* datagrams read in one go */
#define BUFFER_BYTES (1 << 20) /* asked of the system */
#define LARGEST_LINE (4 << 20)
#define LARGEST_KEY 256
#define LOOPBACK "127.0.0.1"

static struct {
  const process_program *program;
  mr_endpoint endpoint;
  int sock;
  unsigned own_port; /* of the socket */
  uint8_t key[LARGEST_KEY];
  size_t key_size;
  double loss;
  uint64_t seed;
  bool drops; /* the datagram that is being delivered */
  double now;
  char input[LARGEST_LINE];
  size_t input_size;
} self;

static double monotonic(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

void process_answer(const char *text, size_t size) {
  while (size) {
    ssize_t written = write(STDOUT_FILENO, text, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) exit(0); /* the parent has ended */
    text += written;
    size -= (size_t)written;
  }
}

void process_fail(const char *reason) {
  char line[512];
  int size = snprintf(line, sizeof line, "{\"error\": \"%s\"}\n", reason);
  process_answer(line, (size_t)size);
  exit(1);
}

uint64_t process_drawn(void *context) {
  static int file = -1;
  uint64_t number = 0;
  (void)context;
  if (file < 0) file = open("/dev/urandom", O_RDONLY);
  if (file < 0 || read(file, &number, sizeof number) != sizeof number)
    process_fail("no random numbers from /dev/urandom");
  return number ? number : 1;
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
  if (!self.drops) self.program->take(port, payload, size, self.now);
}

void process_send(void *context, uint8_t port, const uint8_t *frame, size_t size) {
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
    process_fail("no socket at " LOOPBACK);
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

mr_text process_text(const char *value) {
  char bytes[MR_BUS_LARGEST_TEXT + 1];
  mr_text text = {0, {0}};
  long size = json_text(value, bytes, sizeof bytes);
  if (size < 0 || mr_text_set(&text, (const uint8_t *)bytes, (size_t)size) != MR_OK)
    process_fail("a name or port is no text of up to 64 bytes");
  return text;
}

/* Python's text of an end: only labels whose text is themselves in quotes come here. */
static void end_text(char *text, size_t room, const char *host, unsigned number,
                     const mr_text *label) {
  for (uint8_t k = 0; k < label->size; k++)
    if (label->bytes[k] < 0x20 || label->bytes[k] > 0x7e || strchr("'\\", label->bytes[k]))
      process_fail("native modules need port labels of plain ASCII");
  snprintf(text, room, "(('%s', %u), '%.*s')", host, number, (int)label->size,
           (const char *)label->bytes);
}

static void plug(const char *event) {
  mr_text mine = process_text(json_get(event, "plug")), theirs = process_text(json_get(event, "port"));
  uint8_t port = mr_find_label(self.endpoint.labels, self.endpoint.ports, &mine);
  const char *address = json_get(event, "address"), *number = json_item(address, 1);
  char host[64], here[192], there[192], out[400], in[400];
  struct in_addr parsed;
  unsigned at;
  if (!number || json_text(json_item(address, 0), host, sizeof host) < 0 ||
      inet_pton(AF_INET, host, &parsed) != 1 || port == MR_NO_PORT)
    process_fail("an event to plug has no port of this module, or no address");
  at = (unsigned)strtoul(number, NULL, 10);
  end_text(here, sizeof here, LOOPBACK, self.own_port, &mine);
  end_text(there, sizeof there, host, at, &theirs);
  snprintf(out, sizeof out, "(%s, %s)", here, there);
  snprintf(in, sizeof in, "(%s, %s)", there, here);
  mr_endpoint_plug(&self.endpoint, port, (uint64_t)ntohl(parsed.s_addr) << 16 | (at & 0xffffU),
                   &theirs, self.key, self.key_size, out, in, self.now);
}

static void unplug(const char *value) {
  mr_text label = process_text(value);
  uint8_t port = mr_find_label(self.endpoint.labels, self.endpoint.ports, &label);
  if (port != MR_NO_PORT) mr_endpoint_unplug(&self.endpoint, port);
}

static void signal_in(const char *value) {
  uint8_t signal[MR_BUS_LARGEST_FRAME];
  long size = json_bytes(value, signal, sizeof signal);
  if (size < 0) process_fail("a signal is no text of up to 4096 bytes in hexadecimal digits");
  self.program->signal(signal, (size_t)size, self.now);
}

double process_number(const char *settings, const char *key) {
  const char *value = json_get(settings, key);
  return value ? strtod(value, NULL) : 0;
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
  if (self.program->event) self.program->event(line);
}

double process_start(const char *settings, const mr_text *ports, uint8_t port_count) {
  const mr_endpoint_board board = {on_datagram_out, on_payload, process_drawn, NULL};
  long key_size = json_bytes(json_get(settings, "key"), self.key, sizeof self.key);
  if (key_size < MR_BUS_LEAST_KEY) process_fail("the settings have no key");
  self.key_size = (size_t)key_size;
  self.loss = process_number(settings, "loss");
  self.seed = 2 * (uint64_t)process_number(settings, "seed") + 0x9e3779b97f4a7c15U;
  mr_endpoint_start(&self.endpoint, ports, port_count, &board);
  return self.now = monotonic();
}

int process_run(const process_program *program) {
  pid_t parent = getppid();
  char line[64];
  while (!memchr(self.input, '\n', self.input_size))
    if (!read_input()) return 0;
  self.program = program;
  open_socket();
  each_line(program->set_up, 1);
  snprintf(line, sizeof line, "{\"address\": [\"" LOOPBACK "\", %u]}\n", self.own_port);
  process_answer(line, strlen(line));
#ifdef __linux__
  prctl(PR_SET_PDEATHSIG, SIGCONT); /* a stopped process goes on, and ends, with its parent */
#endif
  while (getppid() == parent) {
    if (!memchr(self.input, '\n', self.input_size)) {
      double wait = self.program->wake() - monotonic();
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
    if (self.program->begin) self.program->begin(self.now);
    receive();
    each_line(on_event, -1);
    self.program->finish(self.now);
    mr_endpoint_flush(&self.endpoint);
  }
  return 0;
}

/* The port for QEMU: files of the host through semihosting in the place of transport and drive.
 *
 * Reads messages.bin (two bytes of size, low byte first, then the message) and states.bin (q and v of
 * each reading), writes answers.bin, torques.bin, and events.bin: for every message and every
 * computed torque the ticks and the bytes of stack between two calls of the port. Ends with the
 * last state. Run with -icount shift=6, where an instruction takes 64 ns.
 */
#include "port.h"

#define LOOP 1000 /* turns of a loop of two instructions that checks the counter */
#define PAINT 0xA5C3E187u

enum { OPEN = 1, WRITE = 5, READ = 6, EXIT = 0x20 };      /* operations of semihosting */
enum { FOR_READING = 1, FOR_WRITING = 5 };                /* modes of OPEN: rb, wb */
enum { MESSAGES, STATES, ANSWERS, TORQUES, EVENTS, FILES };
enum { NOTHING = 0, STEP = 0x80, CHECK = 0x81 }; /* events beside the first bytes of messages */

extern uint32_t stack_bottom[], stack_top[];

static intptr_t files[FILES];
static uint8_t is_open;
static uint32_t event, started; /* what the application is doing, and since when */

#if defined(__arm__)
#define TICKS_PER_US 25 /* SysTick of the boards mps2 */

static uint32_t ticks(void)
{
  return 0xFFFFFF - *(volatile uint32_t *)0xE000E018; /* counts down, 24 bits */
}

static void start_ticks(void)
{
  *(volatile uint32_t *)0xE000E014 = 0xFFFFFF; /* reload */
  *(volatile uint32_t *)0xE000E018 = 0;
  *(volatile uint32_t *)0xE000E010 = 5; /* processor clock, on */
}

static uint32_t *stack_pointer(void)
{
  uint32_t *sp;
  __asm__ volatile("mov %0, sp" : "=r"(sp));
  return sp;
}

static void loop(uint32_t turns)
{
  __asm__ volatile("1: subs %0, #1\n bne 1b" : "+l"(turns)::"cc");
}

static intptr_t semihost(intptr_t operation, const void *arguments)
{
  register intptr_t r0 __asm__("r0") = operation;
  register const void *r1 __asm__("r1") = arguments;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}
#else
#define TICKS_PER_US 10 /* mtime of the board virt */

static uint32_t ticks(void)
{
  return *(volatile uint32_t *)0x0200BFF8 & 0xFFFFFF;
}

static void start_ticks(void) {}

static uint32_t *stack_pointer(void)
{
  uint32_t *sp;
  __asm__ volatile("mv %0, sp" : "=r"(sp));
  return sp;
}

static void loop(uint32_t turns)
{
  uintptr_t left = turns;
  __asm__ volatile("1: addi %0, %0, -1\n bnez %0, 1b" : "+r"(left));
}

static intptr_t semihost(intptr_t operation, const void *arguments)
{
  register intptr_t a0 __asm__("a0") = operation;
  register const void *a1 __asm__("a1") = arguments;
  __asm__ volatile(".balign 16\n .option push\n .option norvc\n slli x0, x0, 0x1f\n ebreak\n"
                   "srai x0, x0, 7\n .option pop"
                   : "+r"(a0)
                   : "r"(a1)
                   : "memory");
  return a0;
}
#endif

static void stop(void)
{
  const uintptr_t reason[2] = {0x20026, 0}; /* the application has ended, with status 0 */
  (void)semihost(EXIT, reason);
}

static intptr_t open_file(const char *name, size_t length, int mode)
{
  const uintptr_t given[3] = {(uintptr_t)name, (uintptr_t)mode, length};
  return semihost(OPEN, given);
}

/* Read all bytes; 0 at the end of the file. */
static int get(int file, void *data, size_t size)
{
  const uintptr_t given[3] = {(uintptr_t)files[file], (uintptr_t)data, size};
  return semihost(READ, given) == 0;
}

static void put(int file, const void *data, size_t size)
{
  const uintptr_t given[3] = {(uintptr_t)files[file], (uintptr_t)data, size};
  (void)semihost(WRITE, given);
}

/* Note what the application took since it was entered. */
static void leave(void)
{
  const uint32_t now = ticks();
  const uint32_t *deepest = stack_bottom;
  if (event == NOTHING) {
    return;
  }
  while (*deepest == PAINT) {
    deepest++;
  }
  {
    const uint32_t line[3] = {event, (now - started) & 0xFFFFFF,
                              (uint32_t)((uintptr_t)stack_top - (uintptr_t)deepest)};
    put(EVENTS, line, sizeof line);
  }
  event = NOTHING;
}

/* Paint the free stack and start counting. */
static void enter(uint32_t what)
{
  uint32_t *const end = stack_pointer();
  for (volatile uint32_t *word = stack_bottom; word < end; word++) {
    *word = PAINT;
  }
  event = what;
  started = ticks();
}

static void open_all(void)
{
#define OPEN_FILE(name, mode) open_file(name, sizeof name - 1, mode)
  files[MESSAGES] = OPEN_FILE("messages.bin", FOR_READING);
  files[STATES] = OPEN_FILE("states.bin", FOR_READING);
  files[ANSWERS] = OPEN_FILE("answers.bin", FOR_WRITING);
  files[TORQUES] = OPEN_FILE("torques.bin", FOR_WRITING);
  files[EVENTS] = OPEN_FILE("events.bin", FOR_WRITING);
  start_ticks();
  enter(CHECK);
  loop(LOOP);
  leave();
  is_open = 1;
}

uint32_t port_clock(void)
{
  static uint32_t before, rest, now; /* the ticks wrap around earlier than the clock */
  const uint32_t passed = rest + ((ticks() - before) & 0xFFFFFF);
  before = (before + passed - rest) & 0xFFFFFF;
  now += passed / TICKS_PER_US;
  rest = passed % TICKS_PER_US;
  return now;
}

size_t port_exchange(const uint8_t *answer, size_t size, uint8_t message[PORT_MESSAGE_SIZE])
{
  uint8_t header[2];
  size_t length = 0;
  leave();
  if (!is_open) {
    open_all();
  }
  if (size > 0) {
    put(ANSWERS, answer, size);
  }
  if (get(MESSAGES, header, sizeof header)) {
    length = header[0] | (size_t)header[1] << 8;
    if (length > PORT_MESSAGE_SIZE || !get(MESSAGES, message, length)) {
      stop();
    }
    enter(message[0]);
  }
  return length;
}

void port_drive(const mr_table *table, const mr_real *tau, mr_real *q, mr_real *v)
{
  const size_t size = (size_t)table->joint_count * sizeof(mr_real);
  leave();
  if (tau != NULL) {
    put(TORQUES, tau, size);
  }
  if (q != NULL) {
    if (!get(STATES, q, size) || !get(STATES, v, size)) {
      stop();
    }
    enter(STEP);
  }
}

/* From reset to main: Cortex-M and RISC-V, with the symbols of boards/memory.ld. */
#include <stdint.h>

extern uint32_t stack_top[], data_start[], data_end[], bss_start[], bss_end[];
extern const uint32_t data_image[];

int main(void);
void reset(void);

static void start(void)
{
  const uint32_t *from = data_image;
  for (volatile uint32_t *to = data_start; to < data_end; to++) {
    *to = *from++;
  }
  for (volatile uint32_t *to = bss_start; to < bss_end; to++) {
    *to = 0;
  }
  (void)main();
  for (;;) {
  }
}

#if defined(__arm__)

static void stop(void) /* on any fault: a debugger shows where */
{
  for (;;) {
  }
}

/* The processor loads the stack pointer and jumps to reset. */
__attribute__((section(".vectors"), used)) static const struct {
  uint32_t *stack;
  void (*handlers[15])(void);
} vectors = {stack_top,
             {reset, stop, stop, stop, stop, stop, 0, 0, 0, 0, stop, stop, 0, stop, stop}};

void reset(void)
{
  *(volatile uint32_t *)0xE000ED88 |= 0xFu << 20; /* CPACR: floating-point unit on */
  __asm__ volatile("dsb\n isb" ::: "memory");
  start();
}

#elif defined(__riscv)

__attribute__((naked, section(".vectors"))) void reset(void)
{
  __asm__ volatile(".option push\n .option norelax\n la gp, __global_pointer$\n .option pop\n"
                   "la sp, stack_top\n"
                   "la tp, tls_start\n"
                   "li t0, 0x6000\n" /* mstatus.FS: floating-point unit on */
                   "csrs mstatus, t0\n"
                   "jr %0" ::"r"(start));
}

#else
#error "boards/startup.c has no code for this processor"
#endif

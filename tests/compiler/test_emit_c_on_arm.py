"""The exported C on a Cortex-M4 without an operating system, emulated by QEMU.

Needs ``arm-none-eabi-gcc`` with newlib, and ``qemu-system-arm`` (Debian: ``gcc-arm-none-eabi``,
``libnewlib-arm-none-eabi``, ``qemu-system-arm``).
"""

from __future__ import annotations

import shutil
import subprocess

import pytest

import modurob as mr
from modurob.compiler.emit_c import c_sources
from oracles.rough_organisms import rough_organism

TOOLS = ("arm-none-eabi-gcc", "qemu-system-arm")
CORTEX_M4 = ("-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16")
WARNINGS = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic")
STATES = 100
LIMIT = 60  # seconds; a run takes a tenth of one

START = """
extern int main(void);
extern void exit(int);
extern void initialise_monitor_handles(void);
extern void stack_top(void);
extern unsigned bss_begin, bss_end;
typedef void (*entry)(void);

void _fini(void);
void _fini(void) {} /* newlib calls it at exit */

static void reset(void)
{
  unsigned *word;
  *(volatile unsigned *)0xE000ED88 |= 0xFu << 20; /* the FPU is off after reset */
  __asm volatile("dsb\\n isb");
  for (word = &bss_begin; word < &bss_end; word++) {
    *word = 0;
  }
  initialise_monitor_handles();
  exit(main());
}

__attribute__((section(".vectors"), used)) static const entry vectors[2] = {stack_top, reset};
"""
# the board mps2-an386: code from 0, data from 0x20000000; QEMU loads both
SCRIPT = """
MEMORY {
  CODE (rx) : ORIGIN = 0x00000000, LENGTH = 4M
  DATA (rwx) : ORIGIN = 0x20000000, LENGTH = 4M
}
SECTIONS {
  .text : { KEEP(*(.vectors)) *(.text* .rodata*) } > CODE
  .ARM.exidx : { *(.ARM.exidx*) } > CODE
  .data : { *(.data*) } > DATA
  .bss (NOLOAD) : { bss_begin = .; *(.bss* COMMON) . = ALIGN(8); bss_end = .; end = .; } > DATA
  stack_top = ORIGIN(DATA) + LENGTH(DATA);
}
"""

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, TOOLS)), reason=f"needs {' and '.join(TOOLS)}"
)

CASES = [
    ("crab", "float64", lambda: mr.examples.crab().model()),
    ("free crab", "float32", lambda: mr.examples.crab().model("physical", base="free")),
    ("arm", "float32", lambda: mr.examples.arm("babac").model("physical")),
    (
        "friction and sliding",
        "float64",
        lambda: rough_organism("cubes and wrists", 3, 8).model("physical"),
    ),
]


@pytest.mark.parametrize(
    ("dtype", "make"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_generated_test_program_passes_on_a_cortex_m4(tmp_path, dtype, make):
    c_sources(make(), "robot", dtype, states=STATES).write(tmp_path)
    (tmp_path / "start.c").write_text(START)
    (tmp_path / "board.ld").write_text(SCRIPT)
    files = ("robot.c", "robot_test.c", "start.c", "-lm", "-o", "robot.elf")
    linking = ("--specs=rdimon.specs", "-nostartfiles", "-T", "board.ld")
    build = ("arm-none-eabi-gcc", *CORTEX_M4, *WARNINGS, "-O2", *linking, *files)
    done = subprocess.run(build, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    board = ("-M", "mps2-an386", "-nographic", "-monitor", "none", "-serial", "null")
    run = ("qemu-system-arm", *board, "-semihosting-config", "enable=on,target=native")
    done = subprocess.run(
        (*run, "-kernel", "robot.elf"), cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT
    )
    output = done.stdout + done.stderr  # semihosting's console is QEMU's stderr
    assert done.returncode == 0, output
    assert output.splitlines()[-1] == "ok"

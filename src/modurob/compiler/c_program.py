"""The test program of an exported C file: reference states, and what must come out.

The numbers come from the recursions run on plain numbers, not from the traces that the C code was
printed from.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from modurob.compiler.c_functions import REALS, Function, Real
from modurob.errors import StateError
from modurob.model import Model
from modurob.model.reference import reference

# allowed error, relative to the largest result, or to the terms of what cancels
LIMITS = {"float64": 1e-12, "float32": 1e-4}
NUMBERS_A_LINE = 6
CANCELLING = {  # to zero in some bodies: their terms have the size of another quantity, times v
    "coriolis_matrix": "mass_matrix",
    "centroidal_momentum_matrix_rate": "centroidal_momentum_matrix",
    "joint_screw_rates": "joint_screws",
}

TEMPLATE = """\
/* {name}_test.c: checks {name}.c against numbers that modurob computed in another way. Prints the
 * largest error of each function, relative to its largest result, and returns 0 if all are small.
 * Written by modurob; do not edit.
 *
 *   cc -std=c99 -O2 -o {name}_test {name}_test.c {name}.c -lm && ./{name}_test
 */

#include "{name}.h"

#include <stdio.h>

#define STATES {states}

{data}

static double worst;

static void compare(const {name}_real *found, const {name}_real *expected, int count, double scale)
{{
  int k;
  for (k = 0; k < count; k++) {{
    const double off = ((double)found[k] - (double)expected[k]) / scale;
    const double error = off < 0.0 ? -off : off;
    if (!(error <= worst) && worst == worst) {{ /* once not a number, it stays that way */
      worst = error;
    }}
  }}
}}

static int passes(const char *function, double limit)
{{
  const int ok = worst <= limit;
  printf("%-26s error %.1e, allowed %.1e: %s\\n", function, worst, limit, ok ? "ok" : "WRONG");
  worst = 0.0;
  return ok;
}}

int main(void)
{{
  int i, ok = 1;
{checks}
  printf("%s\\n", ok ? "ok" : "FAILED");
  return ok ? 0 : 1;
}}
"""
CHECK = """
  for (i = 0; i < STATES; i++) {{
    static {name}_real {result};
    {name}_{function}({arguments});
    compare((const {name}_real *){variable}, expected_{function}[i], {count}, {scale!r});
  }}
  ok = passes("{function}", {limit!r}) && ok;"""


def program_text(
    model: Model, name: str, dtype: str, states: int, functions: Mapping[str, Function]
) -> str:
    """The whole program."""
    real = REALS[dtype]
    inputs, expected = reference_states(model, dtype, states, functions)
    used = {each for spec in functions.values() for each in spec.inputs.values()}
    data = [
        _table(f"{name}_real", f"given_{key}", rows, real)
        for key, rows in inputs.items()
        if key in used
    ]
    checks = []
    for key, spec in functions.items():
        rows = expected[key].reshape(states, -1)
        data.append(_table(f"{name}_real", f"expected_{key}", rows, real))
        scale = float(np.abs(rows).max())
        if spec.quantity in CANCELLING:
            q = model.check_configuration(inputs["q"])
            terms = np.abs(reference(model, CANCELLING[spec.quantity], q)).max()
            scale = max(scale, float(terms * np.abs(inputs["v"]).max()))
        checks.append(_check(name, key, spec, expected[key].shape[1:], scale, LIMITS[dtype]))
    return TEMPLATE.format(
        name=name, states=states, data="\n\n".join(data), checks="\n".join(checks).lstrip("\n")
    )


def reference_states(
    model: Model, dtype: str, states: int, functions: Mapping[str, Function]
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Random inputs (q, v, a, tau, F), exact in the type, and what each function makes of them."""
    rng = np.random.default_rng(0)

    def exact(x: np.ndarray) -> np.ndarray:
        return x.astype(dtype).astype(float)

    q = exact(np.array([model.random_configuration(rng) for _ in range(states)]))
    v, a = exact(rng.standard_normal((2, states, model.nv)))
    checked = model.check_configuration(q)  # the quaternion normalized, as the model does it
    with np.errstate(all="ignore"):
        # with just the forces that a takes, their rounding errors would be most of the result
        tau = exact(2 * reference(model, "inverse_dynamics", checked, v, a))
        modules = list(model.modules.values())
        F = exact(rng.standard_normal((states, len(modules), 6)))
        pushes = model._on_links([(body, F[:, k]) for k, body in enumerate(modules)])
        given = {"q": checked, "v": v, "a": a, "tau": tau, "F": F.reshape(states, -1)}
        expected = {}
        for name, spec in functions.items():
            inputs = [given[x] for array, x in spec.inputs.items() if array != "external"]
            pushed = {"external": pushes} if "external" in spec.inputs else {}
            found = reference(model, spec.quantity, *inputs, **pushed)
            expected[name] = found[:, modules] if "MODULES" in spec.sizes else found
    if not all(np.isfinite(each).all() for each in expected.values()):
        model.forward_dynamics(q, v, tau)  # raises the reason
        raise StateError("the model's equations give numbers that are not finite")
    return given | {"q": q}, expected


def _table(type_name: str, title: str, rows: np.ndarray, real: Real) -> str:
    lines = [f"static const {type_name} {title}[STATES][{rows.shape[1]}] = {{"]
    for row in rows:
        numbers = [real.literal(float(x)) for x in row]
        parts = [
            ", ".join(numbers[k : k + NUMBERS_A_LINE])
            for k in range(0, len(numbers), NUMBERS_A_LINE)
        ]
        lines.append("  {" + ",\n   ".join(parts) + "},")
    return "\n".join([*lines, "};"])


def _check(
    name: str, key: str, spec: Function, shape: tuple[int, ...], scale: float, limit: float
) -> str:
    arguments = [*(f"given_{each}[i]" for each in spec.inputs.values()), spec.result]
    return CHECK.format(
        name=name,
        function=key,
        result=spec.result + "".join(f"[{size}]" for size in shape),
        variable=spec.result,
        arguments=", ".join(arguments),
        count=int(np.prod(shape)),
        scale=scale or 1.0,
        limit=limit,
    ).lstrip("\n")

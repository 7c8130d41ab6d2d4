"""A CPU without extensions gives the numbers of this machine's own code.

It is a process of its own: the environment variables are read when code is first compiled.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys

import llvmlite.binding as llvm
import numpy as np
import pytest

import modurob as mr
from modurob.compiler import fused, jit
from modurob.equations.quantities import QUANTITIES
from modurob.model.reference import reference

# The same recursions with or without fused multiply-adds: rounding, against the largest entry,
# times the condition of these mass matrices, up to 6e3.
ROUNDING = 1e-11
TIERS = {"dyads": "free", "fused": "fixed"}  # with the base that each is tried on
CALLS = {"inverse_dynamics": 3, "forward_dynamics": 3, "mass_matrix": 1}  # with their arguments
STATES = 11  # no multiple of any width

# Every compiled algorithm of both tiers, with states for some blocks and a rest.
SCRIPT = f"""
import sys
import numpy as np
sys.path[:0] = [{os.path.dirname(__file__)!r}]
from test_hosts import answers
np.savez(sys.argv[1], **answers())
"""


def model_of(base: str) -> mr.Model:
    arm = mr.examples.snake(4).with_parameters(viscous=0.2, coulomb=0.1)
    return arm.model("physical", base=base)


def states_of(model: mr.Model) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    q = np.stack([model.random_configuration(rng) for _ in range(STATES)])
    return q, *rng.standard_normal((2, STATES, model.nv))


def answers() -> dict[str, np.ndarray]:
    found = {"width": np.array(jit.host().width)}
    for tier, base in TIERS.items():
        model = model_of(base)
        q, v, x = states_of(model)
        if tier == "dyads":
            pushed = model.forward_dynamics(q, v, x, external={"m1": np.arange(6.0)})
            found["dyads pushed"] = pushed
            for name in ("inverse_dynamics_derivatives", "forward_dynamics_derivatives"):
                found[f"dyads {name}"] = np.stack(getattr(model, name)(q, v, x))
        else:
            model = model.compile()
        found[f"{tier} one"] = model.mass_matrix(q[0])
        for name, size in CALLS.items():
            found[f"{tier} {name}"] = getattr(model, name)(*(q, v, x)[:size])
    return found


def assert_close(found: np.ndarray, expected: np.ndarray, what: str) -> None:
    scale = np.abs(expected).max(initial=1.0)
    np.testing.assert_allclose(found, expected, rtol=0, atol=ROUNDING * scale, err_msg=what)


@pytest.fixture(scope="module")
def own() -> dict[str, np.ndarray]:
    return answers()


def run(code: str, *args: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *args],
        env={**os.environ, "MODUROB_CACHE_DIR": "", **variables},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def test_this_machines_code_matches_the_reference(own):
    for tier, base in TIERS.items():
        model = model_of(base)
        for name, size in CALLS.items():
            expected = reference(model, name, *states_of(model)[:size])
            assert_close(own[f"{tier} {name}"], expected, f"{tier} {name}")


# `make test-simd` runs far more, with every width
def test_a_plain_cpu_takes_two_lanes_and_gives_the_same_numbers(own, tmp_path):
    path = tmp_path / "answers.npz"
    done = run(SCRIPT, str(path), MODUROB_VECTOR_WIDTH="", MODUROB_CPU="generic")
    assert done.returncode == 0, done.stderr
    with np.load(path) as found:
        assert int(found["width"]) == 2
        assert set(found) == set(own)
        for name in set(own) - {"width"}:
            assert_close(found[name], own[name], name)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="looks for AVX")
def test_code_for_a_plain_cpu_uses_no_avx(monkeypatch):
    monkeypatch.setenv("MODUROB_CPU", "generic")
    monkeypatch.delenv("MODUROB_VECTOR_WIDTH", raising=False)
    host = jit.Host()
    assert host.width == 2
    ir = fused.module_ir(QUANTITIES["mass_matrix"], model_of("fixed"))
    text = host.target_machine().emit_assembly(llvm.parse_assembly(ir))
    assert "mulpd" in text
    assert not re.search(r"%[yz]mm|\bv\w+pd\b", text)


@pytest.mark.parametrize(
    ("variable", "value", "valid"),
    [("MODUROB_VECTOR_WIDTH", "3", "2, 4, 8"), ("MODUROB_CPU", "pentium", "host, generic")],
)
def test_a_wrong_choice_is_one_clear_line(variable, value, valid, monkeypatch):
    monkeypatch.setenv(variable, value)
    with pytest.raises(mr.StateError) as caught:
        jit.Host()
    assert str(caught.value) == (
        f"the environment variable {variable} is '{value}': set it to one of {valid}, or unset it"
    )

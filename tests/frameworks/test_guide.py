"""The guide to frameworks: its examples run where a framework is installed."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from modurob.interop.differentiable import FUNCTIONS, VERSIONS

TEXT = (Path(__file__).parents[2] / "docs" / "guide" / "frameworks.md").read_text(encoding="utf-8")
COMMON, *SECTIONS = re.split(r"\n## (?=PyTorch|JAX|CasADi)", TEXT)


@pytest.mark.parametrize("section", SECTIONS, ids=["torch", "jax", "casadi"])
def test_the_examples_of_a_framework_run(section):
    blocks = re.findall(r"```python\n(.*?)```", COMMON + section, re.DOTALL)
    (name,) = re.findall(r"from modurob.interop import (\w+)", section)
    if find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    scope = {}
    for block in blocks:
        exec(block, scope)
    if name == "torch":
        assert np.abs(scope["tau"].grad.numpy()).max() > 0
    elif name == "jax":
        q, rest = np.full(3, 0.1), np.zeros(3)
        expected = scope["model"].forward_dynamics_derivatives(q, rest, rest).dq
        np.testing.assert_allclose(scope["slope"](q), expected, rtol=1e-12, atol=1e-12)
    else:
        assert scope["hessian"].shape == (3, 3)
        assert scope["A"].sparsity().nnz() == 20 * 3 * 3


def test_the_page_names_every_function_and_the_known_versions():
    for name in FUNCTIONS:
        assert f"| `{name}` |" in TEXT
    for name, (least, beyond, _) in VERSIONS.items():
        known = " to below ".join(".".join(map(str, each)) for each in (least, beyond))
        assert f"| `pip install 'modurob[{name}]'` | {known} |" in TEXT

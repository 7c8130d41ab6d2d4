"""Equations of motion on paper.

A pendulum of two modules: its equations are printed, written for LaTeX and exported as C for a
microcontroller, and the periods of its small swings follow from the linearized equations. They are
checked against the formula that a textbook gives.

Run it with `python examples/03_equations.py`; files go to `output/`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import modurob as mr

OUTPUT = Path("output")
ROUNDING = 1e-9  # of two frequencies [1/s^2] computed in two ways


def write(equations: mr.symbolic.Equations) -> None:
    """The same equations for a document and for firmware."""
    OUTPUT.mkdir(exist_ok=True)
    paper = OUTPUT / "pendulum.tex"
    paper.write_text(equations.latex(document=True), encoding="utf-8")
    for path in (paper, *equations.to_c("pendulum").write(OUTPUT)):
        print(f"wrote {path.as_posix()}")


def small_swings(equations: mr.symbolic.Equations) -> np.ndarray:
    """Squared frequencies about the hanging position. [1/s^2]"""
    small = equations.linearize(q=[0, 0])
    print("A =", small.A.tolist())
    A = np.array(small.A.subs(equations.values), dtype=float)
    return np.sort(np.linalg.eigvals(A).imag ** 2)[::2]


def main() -> None:
    l1, l2, m1, m2, g = 1.5, 2.0, 3.0, 4.0, 9.81
    organism = mr.examples.double_pendulum(l1, l2, m1, m2)
    equations = organism.equations(hinges="physical")
    print(equations.text())
    write(equations)
    squares = small_swings(equations)
    half, product = (
        g * (m1 + m2) * (l1 + l2) / (2 * m1 * l1 * l2),
        g**2 * (m1 + m2) / (m1 * l1 * l2),
    )
    textbook = half + np.array([-1, 1]) * np.sqrt(half**2 - product)
    assert np.abs(squares - textbook).max() < ROUNDING
    periods = ", ".join(f"{period:.3f} s" for period in 2 * np.pi / np.sqrt(squares))
    print(f"periods of small swings: {periods}, as in the textbook")


if __name__ == "__main__":
    main()

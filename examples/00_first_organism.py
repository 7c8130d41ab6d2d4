"""The first organism.

A crab of six Scouts, docked one by one. The program shows the crab as text, the matrices that
describe it, which of its joints can move and why the others cannot, where a claw is when the joints
turn, and where the center of mass lies. It compares the matrices with the literature and writes a
picture and a file that `modurob show` opens.

Run it with `python examples/00_first_organism.py`, or with `make demo`.
"""

import sys
from pathlib import Path

import numpy as np

import modurob as mr
from modurob.drawing import draw, picture

# The crab in meister2013 (Fig. 4): dockings as (i, j, side of i, side of j), and dyad classes.
DOCKINGS = [(0, 1, 3, 4), (1, 2, 2, 5), (2, 3, 3, 2), (1, 4, 5, 2), (4, 5, 3, 5)]
CLASSES = ["DP", "DS", "DO", "DS", "DO"]
AIM = [
    [3, 0, 0, 0, 0],
    [4, 2, 0, 5, 0],
    [0, 5, 3, 0, 0],
    [0, 0, 2, 0, 0],
    [0, 0, 0, 2, 3],
    [0, 0, 0, 0, 5],
]


def heading(text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}")


def rounded(values: np.ndarray) -> np.ndarray:
    return values.round(4) + 0.0  # + 0.0: no minus zeros


def build_crab() -> mr.Organism:
    """Dock module after module; each docking returns a new organism."""
    crab = mr.Organism.start("scout")  # the base, named m0
    crab = crab.dock("m0", 3, "m1", 4)  # side 3 of m0 to side 4 of the new m1, a Scout too
    crab = crab.dock("m1", 2, "m2", 5)  # the right shoulder
    crab = crab.dock("m2", 3, "m3", 2)  # the right claw
    crab = crab.dock("m1", 5, "m4", 2)  # the left shoulder
    crab = crab.dock("m4", 3, "m5", 5)  # the left claw
    return crab


def show_matrices(crab: mr.Organism) -> None:
    heading("Matrices")
    print("assembly incidence matrix, with kinds and dyad classes:")
    print(crab.aim())
    print("\naccessibility (1 where the column's module lies beyond the row's):")
    print(crab.accessibility())
    print("\npairs of modules that are not neighbors (T_ij = T_ix T_xj):")
    for i, j, _, x, *_ in crab.indirect_transforms().tolist():
        print(f"  T_{i}{j} = T_{i}{x} T_{x}{j}")


def show_joints(crab: mr.Organism) -> None:
    heading("Joints")
    for hinges in ("dyad", "physical"):
        model = crab.model(hinges=hinges)
        print(f"{hinges} hinges: {len(model.joint_names)} active: {', '.join(model.joint_names)}")
        for joint, reason in model.locked.items():
            print(f"  {joint} is locked: {reason}")


def show_kinematics(crab: mr.Organism) -> None:
    heading("Kinematics")
    model = crab.model(hinges="dyad")
    q = np.deg2rad([20.0, 30.0, -30.0])  # m1, m3 and m5
    claw = model.forward_kinematics(q)[model.body_index("m3")]
    print(f"q = {np.rad2deg(q).round(1)} deg turns {', '.join(model.joint_names)}")
    print(f"the claw m3 is at {rounded(claw[:3, 3])} m, its axes are the columns of")
    print(rounded(claw[:3, :3]))
    print(f"center of mass: {rounded(model.center_of_mass(q))} m")
    print(f"at rest it is:  {rounded(model.center_of_mass(model.neutral()))} m")


def matches_literature(crab: mr.Organism) -> bool:
    """Whether sides, classes and matrix are those of the document."""
    return (
        np.array_equal(crab.direct_transforms(), DOCKINGS)
        and crab.dyad_classes() == CLASSES
        and np.array_equal(crab.aim().matrix, AIM)
        and set(crab.aim().kinds) == {"S"}
    )


def main() -> int:
    crab = build_crab()
    print(draw(crab))
    show_matrices(crab)
    show_joints(crab)
    show_kinematics(crab)

    heading("Check")
    if not matches_literature(crab):
        print("this crab DIFFERS from the one in meister2013")
        return 1
    print("matches meister2013")

    heading("Files")
    folder = Path("output")
    folder.mkdir(exist_ok=True)
    # physical hinges: the base bends up, the claws rise and turn inward
    posture = [0.35, 0.0, 0.5, 0.6, 0.5, -0.6]
    picture(crab, folder / "crab.png", q=posture, view=(-72.0, 24.0))
    crab.save(folder / "crab.json")
    print(f"picture:  {folder / 'crab.png'}")
    print(f"organism: {folder / 'crab.json'}  (modurob show {folder / 'crab.json'})")
    return 0


if __name__ == "__main__":
    sys.exit(main())

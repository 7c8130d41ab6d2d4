"""An arm of modules that carry their own data.

Five modules in a row (b-a-b-a-c, from giusti2015): two rotate about their length, two bend, the
last one slides. Forward kinematics says where the tool is; inverse kinematics finds joint positions
that bring it elsewhere, within the joints' limits.

Run it with `python examples/01_arm.py`.
"""

import sys
from pathlib import Path

import numpy as np

import modurob as mr
from modurob.drawing import draw, picture

ACCURACY = 1e-9  # [m] the solver stops at 1e-10


def main() -> int:
    arm = mr.examples.arm("babac")
    print(draw(arm))
    model = arm.model(hinges="physical")
    tool = "m4.distal"  # the sliding part of the last module

    np.set_printoptions(precision=4, suppress=True)
    q = np.array([0.2, 0.4, 0.6, 0.8, 0.1])
    T_wt = model.forward_kinematics(q)[model.body_index(tool)]
    print(f"\njoints {', '.join(model.joint_names)}")
    print(f"at q = {q} the tool is at {T_wt[:3, 3]} m and points along {T_wt[:3, 2]}")
    print("velocity of the tool per joint velocity, world axes (linear rows first):")
    print(model.jacobian(q, tool, frame="aligned").round(4) + 0.0)  # + 0.0: no minus zeros

    target = T_wt[:3, 3] + [0.1, -0.15, -0.05]
    found = model.inverse_kinematics({tool: target}, q0=q)
    reached = model.forward_kinematics(found.q)[model.body_index(tool)][:3, 3]
    miss = float(np.linalg.norm(reached - target))
    print(f"\nto reach {target} m, q = {found.q}")
    print(f"the tool is then {miss:.1e} m away from it, after {found.starts} start(s)")

    folder = Path("output")
    folder.mkdir(exist_ok=True)
    picture(arm, folder / "arm.png", q=found.q)
    arm.save(folder / "arm.json")
    print(f"\npicture:  {folder / 'arm.png'}\norganism: {folder / 'arm.json'}")
    return 0 if found.reached and miss < ACCURACY else 1


if __name__ == "__main__":
    sys.exit(main())

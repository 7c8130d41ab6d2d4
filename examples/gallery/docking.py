"""A body that changes in flight.

A crab drifts and spins, lets go of a claw, and a new module comes flying and docks. The equations
change in the middle of the run; the momentum of the whole does not.
"""

import modurob as mr

crab = mr.examples.crab()
model = crab.model(hinges="physical", base="free", gravity=(0.0, 0.0, 0.0))
v = [0.05, 0.0, 0.0, 0.3, 0.2, 1.0] + [0.0] * 6
events = [
    mr.Undock(0.8, "m5"),
    mr.Dock(1.6, "m3", 3, "new", 4, approach=(0.0, 0.0, 0.4, 0.0, 0.0, 0.0)),
]
run = mr.simulate(model, None, v, 2.4, events=events, organism=crab, record=0.02)
view = run.view()
view.save("docking.html")

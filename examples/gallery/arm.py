"""An arm that reaches for a point.

Five modules that carry their own data (giusti2015). Inverse kinematics finds the joints, computed
torque brings them there in a second.
"""

import modurob as mr

arm = mr.examples.arm("babac")
model = arm.model(hinges="physical")
goal = model.inverse_kinematics({"m4.distal": [0.4, 0.2, 0.5]}, q0=[0.2, 0.4, 0.6, 0.8, 0.1]).q
law = mr.control.ComputedTorque(model, settling_time=1.0)
run = mr.simulate(model, None, None, 2.0, law, reference=goal, record=0.02, organism=arm)
view = run.view()
view.save("arm.html")

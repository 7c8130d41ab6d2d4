"""A crab of six Scouts.

The organism of meister2013, with its claws raised. Turn it with the mouse.
"""

import modurob as mr

body = mr.examples.crab()
q = [0.35, 0.0, 0.5, 0.6, 0.5, -0.6]
view = body.view(q, model=body.model(hinges="physical"))
view.save("crab.html")

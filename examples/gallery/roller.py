"""A rolling arc of four SuperBots.

Pitch and yaw joints follow sines a quarter of a period apart: the bend goes around the body, and
the body rolls sideways.
"""

from modurob.walking import zoo_walk

found = zoo_walk("roller", duration=4.0)
run = found.trajectory
view = run.view(ground=found.ground)
view.save("roller.html")

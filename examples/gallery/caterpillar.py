"""A caterpillar of six Backbones.

A wave travels along the body and pushes it over the ground. Arrows are the forces of the ground.
"""

from modurob.walking import zoo_walk

found = zoo_walk("caterpillar", duration=4.0)
run = found.trajectory
view = run.view(ground=found.ground)
view.save("caterpillar.html")

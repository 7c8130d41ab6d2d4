"""A cross of nine Backbones.

One module in the middle and four legs of two, with a gait that was tuned by CMA-ES.
"""

from modurob.walking import zoo_walk

found = zoo_walk("cross", duration=4.0)
run = found.trajectory
view = run.view(ground=found.ground)
view.save("cross.html")

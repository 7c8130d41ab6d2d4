"""A tree that balances by messages.

Eight SuperBots know their own joints and what their neighbors tell them, with one message in ten
lost (moll2006). The center of mass moves above the base.
"""

import numpy as np

import modurob as mr

rng = np.random.default_rng(4)
tree = mr.Organism.random("superbot", 8, rng)
run = mr.distributed.balance(tree, duration=1.5, loss=0.1, rng=rng)
view = run.view()
view.save("balance.html")

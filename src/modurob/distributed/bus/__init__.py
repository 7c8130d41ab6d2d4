"""The module bus: modules that carry their own data find each other over a network.

`messages` and `links` are the protocol between neighbors, `node` and `coordinator` the programs,
`survey` and `assembly` the tree that follows, `robot` its model and controller. `SimulatedBus` and
`ProcessBus` run these programs unchanged, in one process or in one process for each module.
"""

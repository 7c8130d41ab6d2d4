"""The module bus: modules that carry their own data find each other over a network.

`messages` and `links` are what neighbours say, `node` and `coordinator` the programs that say it,
`survey` and `assembly` what follows from it, `mind` the model and controller. `SimulatedBus` and
`ProcessBus` run these programs unchanged, in one process or in one process for each module.
"""

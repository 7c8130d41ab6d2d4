"""Scenarios: a run as one checked value, for scripts, the command line and the studio.

`scenario.Scenario` is the value, `settings` its fields, `bodies` the built-in organisms, `exports`
the formats of files for other programs.
"""

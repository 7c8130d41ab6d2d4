"""Modules as processes of the operating system: `child` is their side, `parent` the other one."""

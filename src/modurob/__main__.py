"""``python -m modurob``: the same as the command ``modurob``."""

from modurob.cli import main

main()

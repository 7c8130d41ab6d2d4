"""The documents modurob grew out of, computed again: ``modurob papers`` runs them all."""

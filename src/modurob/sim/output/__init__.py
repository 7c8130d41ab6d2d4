"""Output of trajectories: files, tables, plots, pictures and films."""

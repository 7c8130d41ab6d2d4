"""Measurements, never tests: ``python -m benchmarks`` runs them all and keeps their numbers."""

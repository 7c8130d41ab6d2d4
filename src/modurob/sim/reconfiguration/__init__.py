"""Runs in which the body changes: events, states carried over, impacts."""

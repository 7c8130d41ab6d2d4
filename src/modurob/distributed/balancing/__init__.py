"""Decentralized balance: modules that steer the center of mass of the whole."""

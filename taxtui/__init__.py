"""Measure the cost of sandboxes of coding agents in a reinforcement-learning run."""

__version__ = "0.1.0"

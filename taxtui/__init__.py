"""Measure what the place where coding agents run their commands costs a reinforcement-learning run."""

__version__ = "0.1.0"

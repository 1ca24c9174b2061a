"""The content of ``taxtui project``."""

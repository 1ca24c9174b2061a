"""The content of ``taxtui project`` and ``taxtui compare``."""

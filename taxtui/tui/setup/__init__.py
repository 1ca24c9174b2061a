"""Screen 1: what to measure."""

"""Screen 2: a measurement in progress, or a recording."""

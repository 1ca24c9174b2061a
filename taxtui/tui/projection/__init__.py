"""Screen 4: the cost of a training run."""

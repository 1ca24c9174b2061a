"""The training run to project: its size, its policies and its limits."""

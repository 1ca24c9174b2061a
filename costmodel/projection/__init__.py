"""Projection: a workload and a training run become a row of worker-hours, wall-clock, money and warnings."""

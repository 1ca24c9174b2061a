"""Fixtures of the shipped tiers, the image with the fixtures, and tiers from repositories and trajectories."""

"""The training run to project: its size, its policies and its limits.

Contains the training run as one checked value, with its policies and precision (``run``), the settings that need or
exclude each other (``combinations``), numbers of actions (``length``), and sizes of container images (``images``).
"""

"""The training run to project: its size, its policies and its limits.

Contains the training run as one checked value (``run``), the settings that need or exclude each other
(``combinations``), the precision of a simulation (``precision``), numbers of actions (``length``), sizes of container
images (``images``), the life of a sandbox (``life_cycle``), and how rollouts and training overlap (``policies``).
"""

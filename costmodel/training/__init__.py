"""The training run to project: its size, its policies and its limits.

Contains the training run as one checked value (``run``), numbers of actions (``length``), sizes of container images
(``images``), and how rollouts and training steps overlap (``policies``).
"""

"""Assignments of trials to workers: child processes, nodes of a Ray cluster, repetitions, resumption."""

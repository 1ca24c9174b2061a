"""Assignments of trials to processes: workers, repetitions, nodes of a Ray cluster, and what a cut run still lacks."""

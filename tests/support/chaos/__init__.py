"""Strikes at runs, each from a seed: ``python -m tests.support.chaos [--cases N] [--seed S] [--only K] [--kills]``.

A case is one run, one strike at a moment of the seed's choosing, and what is left of both. Whatever the strike: the run
ends, within documented exit codes, outcomes and classes of errors; its recording can be read; and nothing is left once
the next run has said what this one left and ``taxtui clean`` has removed it.
"""

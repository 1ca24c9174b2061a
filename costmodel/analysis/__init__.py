"""Analysis: questions about rows.

Contains all rows of recordings and providers (``project``), their ranking (``ranking``), differences
from a baseline (``baseline``), and the decision between two substrates (``decision``, ``bill``, ``thresholds``). Also
the effect of a life-cycle action (``what_if``), the regression check (``comparison``, ``compared_metrics``),
concurrency sweeps (``concurrency_sweep``) and questions in one call (``questions``).
"""

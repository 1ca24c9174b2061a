"""Analysis: questions that rows answer.

Contains all rows of recordings and providers (``project``), their ranking and its headline
(``ranking``, ``headline``), differences from a baseline (``baseline``), the decision between two substrates with its
thresholds (``decision``, ``thresholds``, ``per_substrate``), the effect of a change (``sensitivity``), the regression
check (``regression``), concurrency sweeps (``concurrency_sweep``) and sizes of a warm pool (``pool_size``).
"""

"""The workload of a cell: its trials as attempts of the requested length, think time and concurrency.

Contains the trials of a cell and the effect of a busy measuring process (``pool``), their attempts as columns
(``attempts``), weighted sums over attempts with intervals (``estimator``), longer trajectories
(``length_extrapolation``), other times and concurrencies, and inputs with a range (``rescaling``), and distributions
estimated from recordings (``characterization``).
"""

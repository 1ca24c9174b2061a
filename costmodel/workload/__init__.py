"""The workload of a cell: its trials as attempts of the requested length, think time and concurrency.

Contains the trials of a cell (``pool``), their attempts as columns (``attempts``), weighted sums over attempts with
intervals (``estimator``), longer trajectories (``length_extrapolation``), other times and concurrencies
(``rescaling``), the effect of seconds in which the measuring process was late
(``contamination``), inputs with a range (``scenario_range``), and distributions estimated from recordings
(``characterization``).
"""

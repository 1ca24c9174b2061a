"""Unmeasured providers: published start-up times, limits and prices around measured commands.

Contains the shipped limits (``limits``), everything that is published about one provider (``provider``), the estimated
workload there (``estimation``), the ranges of unmeasured inputs (``plausible_ranges``), and the data files (``data``).
"""

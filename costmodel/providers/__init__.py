"""Unmeasured providers: published start-up times, limits and prices around measured commands.

Contains the shipped figures (``published_figures``) and limits (``limits``), everything that is published about one
provider (``provider``), the estimated workload there (``estimation``), and the data files (``data``).
"""

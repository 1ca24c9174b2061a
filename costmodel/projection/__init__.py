"""Projection: a workload and a training run become a row of worker-hours, wall-clock, money and warnings.

Contains the row (``row``), the row of a measured cell (``measured_row``) and of published figures (``published_rows``),
and their parts: time (``wall_clock``, ``tail_limits``), money (``cost``), bounds of an unknown tax (``tax_bounds``),
reasons to doubt a row (``warnings``) and the options that a row can use (``diagnostics``).
"""

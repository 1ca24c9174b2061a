"""Measurement: trials, arrivals, workers, and the watchdog behind a run."""

"""Analysis: questions about rows: ranking, comparison, decision, thresholds and concurrency sweeps."""

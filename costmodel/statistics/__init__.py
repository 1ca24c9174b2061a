"""Statistics without terms of the domain: intervals, quantiles, distributions, verdicts."""

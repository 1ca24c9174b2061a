"""Statistics without terms of the domain: intervals, quantiles, distributions, verdicts.

Contains confidence intervals and Student's t (``intervals``), the spread between repetitions of a measurement
(``repetitions``), order-statistic limits of percentiles (``quantiles``), weighted empirical distributions
(``distribution``), the decision between two estimates (``verdict``), sums of lognormal times (``lognormal_sum``) and
curves over concurrency (``scalability``).
No module of this room imports another room.
"""

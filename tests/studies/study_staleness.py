"""Mean staleness and period of asynchronous runs: the step model against the closed form of tests/support/staleness.py.

python -m tests.studies.study_staleness
"""

from __future__ import annotations

from tests.support.staleness import MEAN_S, SYSTEMS, asynchronous, mean_period_s, mean_staleness


def main() -> None:
    """Print the table."""
    heads = f"{'C/B + u':>8} {'model':>6} {'period':>8} {'model':>8}"
    print(f"{'in flight':>9} {'batch':>6} {'trainer':>8} {'sigma':>6} {heads}")
    for in_flight, batch, busy in SYSTEMS:
        for spread in (0.0, 0.4, 1.0):
            period_s = MEAN_S * batch / in_flight
            steps = asynchronous(in_flight, batch, busy * period_s, spread)
            told = f"{in_flight / batch + busy:8.2f} {mean_staleness(steps, batch, busy * period_s):6.2f}"
            periods = f"{period_s:6.2f} s {mean_period_s(steps):6.2f} s"
            print(f"{in_flight:>9} {batch:>6} {busy:>8.0%} {spread:>6} {told} {periods}", flush=True)


if __name__ == "__main__":
    main()

"""How often an attribution's 95 % intervals hold the truth: repetitions 1, 2, 3, 6 with an sd of 0, 5, 10 % between.

    python -m tests.studies.study_attribution [RECORDINGS]

Each recording has 180 trials in all, drawn from one law, and is attributed with a fraction of the usual effort.
The truth is one recording of 3,000 trials without an effect of repetitions, simulated at length.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.support.cost_model.attributed_worlds import AMOUNTS, attributed, holds, recorded, two_sided

RECORDINGS: Final = 40
REPETITIONS: Final = (1, 2, 3, 6)
SDS: Final = (0.0, 0.05, 0.10)


def main(recordings: int) -> None:
    """Print the table."""
    print(f"{recordings} recordings each: share whose interval holds the truth, seconds per step and worker-hours")
    print(f"{'sd':>4} {'repetitions':>11} {'both limits':>11}  " + "  ".join(f"{name:>14}" for name in AMOUNTS))
    with tempfile.TemporaryDirectory() as name:
        truth = attributed(recorded(Path(name), 0, 1, 0.0, trials=3_000), effort=4.0)
        for sd in SDS:
            for repetitions in REPETITIONS:
                results = [
                    attributed(recorded(Path(name), seed, repetitions, sd), seed=seed)
                    for seed in range(1, recordings + 1)
                ]
                shares = [
                    " / ".join(
                        f"{sum(holds(result[amount], truth[amount], unit) for result in results) / recordings:.0%}"
                        for unit in ("step_s", "worker_hours")
                    )
                    for amount in AMOUNTS
                ]
                both = sum(two_sided(result["sandbox"], "step_s") for result in results) / recordings
                print(
                    f"{sd:>4.0%} {repetitions:>11} {both:>11.0%}  " + "  ".join(f"{share:>14}" for share in shares),
                    flush=True,
                )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else RECORDINGS)

"""Six real repetitions of scenarios/aa.toml: false differences, planted ones, means inside each other's intervals.

python -m tests.benchmarks.bench_aa
"""

from __future__ import annotations

from tests.support.repeated import AA, MISSING, rates


def main() -> None:
    """Print the table."""
    if not AA.exists():
        print(MISSING)
        return
    found = rates(AA)
    print(f"pairs of runs said to differ, {found.pairs} pairs of cells       {found.falsely_different:6.3f}   ≤ .05")
    print(f"mean of a run in the interval of another                {found.inside:6.3f}   ≥ .90")
    print(f"+20 % found between 3 runs and 3 others, {found.triples} choices     {found.found_20:6.3f}   ≥ .90")
    print(f"+5 % found inside one run, local                        {found.found_5_inside:6.3f}")
    print(f"+5 % found inside all runs together                     {found.found_5_inside_all}")


if __name__ == "__main__":
    main()

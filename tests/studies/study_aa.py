"""Six real repetitions of scenarios/aa.toml: false differences, planted ones, means inside each other's intervals.

A 95 % interval is of the truth: the mean of another run, which is as uncertain as its own, lies in it in 83 %.

python -m tests.studies.study_aa
"""

from __future__ import annotations

from tests.support.cost_model.repeated import AA, rates


def main() -> None:
    """Print the table."""
    found = rates(AA)
    print(f"pairs of runs said to differ, {found.pairs} pairs of cells       {found.falsely_different:6.3f}   ≤ .05")
    print(f"mean of a run in the interval of another                {found.inside:6.3f}   ≥ .83")
    print(f"+20 % found inside one run, local and docker            {found.found_20_inside:6.3f}   ≥ .90")
    print(f"+20 % found between 3 runs and 3 others, {found.triples} choices     {found.found_20:6.3f}")
    print(f"+5 % found inside one run, local                        {found.found_5_inside:6.3f}")
    print(f"+5 % found inside all runs together                     {found.found_5_inside_all}")


if __name__ == "__main__":
    main()

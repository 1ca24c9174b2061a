"""Importing 10,000 Harbor trials of 50 commands, beside only decoding the same files with ``json``: CPU time.

python tests/benchmarks/bench_import.py [TRIALS]
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import tracemalloc
from datetime import UTC, datetime, timedelta
from pathlib import Path

from taxtui.importers import registry
from taxtui.importers.importing import import_files
from taxtui.importers.protocol import ReaderOptions
from tests.benchmarks.figures import tell
from tests.support.importing import SAMPLES

COMMANDS = 50
BEGUN = datetime(2026, 11, 21, tzinfo=UTC)


def stamp(seconds: float) -> str:
    return (BEGUN + timedelta(seconds=seconds)).isoformat()


def trial(folder: Path, number: int) -> None:
    """A result as Harbor writes it, and its agent's 50 commands with outputs of 1 kB."""
    result = json.loads((SAMPLES / "harbor" / "job" / "task__cFxjvBA" / "result.json").read_text())
    at = number * 3.0
    ends = {"environment_setup": (0, 4), "agent_setup": (4, 5), "agent_execution": (5, 560), "verifier": (561, 580)}
    result |= {key: {"started_at": stamp(at + a), "finished_at": stamp(at + b)} for key, (a, b) in ends.items()}
    result |= {"trial_name": f"t{number}", "task_name": f"task{number % 500}", "agent_info": {"name": "claude-code"}}
    calls = [stamp(at + 15 + 11 * i) for i in range(COMMANDS)]
    steps = [
        {
            "source": "agent",
            "timestamp": call,
            "tool_calls": [{"tool_call_id": f"c{i}", "extra": {"started_at": call, "duration_ms": 800}}],
            "observation": {"results": [{"source_call_id": f"c{i}", "content": "x" * 1000}]},
        }
        for i, call in enumerate(calls)
    ]
    (folder / "agent").mkdir(parents=True)
    (folder / "result.json").write_text(json.dumps(result))
    (folder / "agent" / "trajectory.json").write_text(json.dumps({"agent": {"name": "claude-code"}, "steps": steps}))


def run(source: Path, out: Path) -> tuple[int, float]:
    began = time.process_time()
    found = import_files(registry.load("harbor"), [source], out, ReaderOptions())
    return found.trials, time.process_time() - began


def main(trials: int) -> None:
    with tempfile.TemporaryDirectory() as root:
        source = Path(root, "jobs")
        for number in range(trials):
            trial(source / f"t{number:06d}", number)
        began = time.process_time()
        for path in sorted(source.rglob("*.json")):
            json.loads(path.read_bytes())
        plain_s = time.process_time() - began
        count, took_s = run(source, Path(root, "all.msgpack"))
        size = Path(root, "all.msgpack").stat().st_size
        print(f"{count:,} trials of {COMMANDS} commands: {took_s:.1f} s of CPU, {count / took_s:,.0f} trials/s")
        print(f"  {took_s / plain_s:.2f} x json alone ({plain_s:.1f} s); {size / count:,.0f} bytes a trial")
        tell("import of Harbor's trials, CPU", took_s, "s", plain_s, "json alone")
        peaks = []
        for share in (100, 10):
            part = Path(root, f"part{share}")
            part.mkdir()
            for number in range(trials // share):
                (part / f"t{number:06d}").symlink_to(source / f"t{number:06d}")
            few = [part / f"t{number:06d}" for number in range(trials // share)]
            tracemalloc.start()
            import_files(registry.load("harbor"), few[:1], Path(root, f"warm{share}.msgpack"), ReaderOptions())
            tracemalloc.reset_peak()
            import_files(registry.load("harbor"), few, Path(root, f"{share}.msgpack"), ReaderOptions())
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        print(
            "  peak memory "
            + ", ".join(f"{peak / 1e6:.1f} MB" for peak in peaks)
            + " for a hundredth and a tenth of them"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)

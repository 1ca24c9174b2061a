"""Every process that measures is settled first, whichever way it was started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from taxtui.runner import gc_tuning
from tests.support import paced_fake

pytestmark = pytest.mark.processes

TELLER = """
import gc, os, sys
from pathlib import Path
from tests.support.paced_fake import PacedSubstrate

class TellingSubstrate(PacedSubstrate):
    async def create(self, spec, marks):
        with (Path(__file__).parent / f"told.{os.getpid()}").open("a") as told:
            told.write(f"{gc.get_threshold()} {sys.getswitchinterval()}\\n")
        return await super().create(spec, marks)
"""


@pytest.mark.parametrize("words", [[], ["--processes", "2"]], ids=["one", "workers"])
def test_whoever_makes_sandboxes_is_settled(tmp_path: Path, words: list[str]) -> None:
    there = paced_fake.environment(tmp_path)
    (tmp_path / "telling.py").write_text(TELLER)
    entry_points = tmp_path / "paced-0.dist-info" / "entry_points.txt"
    entry_points.write_text(f"[taxtui.substrates]\n{paced_fake.NAME} = telling:TellingSubstrate\n")
    run = ["run", "-s", paced_fake.NAME, "-t", str(paced_fake.tier(tmp_path)), "-n", "1", "--mode", "exec"]
    run += ["--set", "bracket=false", "--trials", "4", "--warmup", "0", "--concurrency", "2", "--progress", "none"]
    argv = [sys.executable, "-m", "taxtui", *run, *words, "-o", str(tmp_path / "r.msgpack")]
    subprocess.run(argv, env=os.environ | there, capture_output=True, check=True)
    told = list(tmp_path.glob("told.*"))
    assert len(told) == (2 if words else 1), "not as many processes as were asked for made sandboxes"
    for process in told:
        assert set(process.read_text().splitlines()) == {f"{gc_tuning.COLLECT_AFTER} {gc_tuning.SWITCH_INTERVAL_S}"}

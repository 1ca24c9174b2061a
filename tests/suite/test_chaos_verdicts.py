"""That chaos would notice: what its verdicts call a failure, and that a seed repeats a case."""

from __future__ import annotations

import itertools
from pathlib import Path
from random import Random

import msgspec
import pytest

from costmodel.recording.framing import FrameParser
from taxtui import cli
from tests.support.chaos import nonsense, processes
from tests.support.chaos.__main__ import STRUCK
from tests.support.chaos.cases import UNDOCUMENTED, UNREADABLE, cases, documented, judged
from tests.support.chaos.strikes import KILLS, Victim
from tests.support.command_line import Home
from tests.support.fuzz import hostile

OURS = f'Traceback (most recent call last):\n  File "{cli.__file__}", line 1, in main\nKeyError: 1\n'
PYTHON_S = 'Traceback (most recent call last):\n  File "<frozen runpy>", line 1, in x\nKeyboardInterrupt\n'
IN_A_CHECKOUT = (
    'Traceback (most recent call last):\n  File "/x/taxtui/.venv/site.py", line 1, in x\nKeyboardInterrupt\n'
)


def test_a_seed_and_a_number_are_a_case() -> None:
    first, again = (list(itertools.islice(cases(STRUCK, 3), 500)) for _ in range(2))
    assert first == again
    assert [case.source.random() for case in first] == [case.source.random() for case in again]
    assert first != list(itertools.islice(cases(STRUCK, 4), 500))
    assert len({case.run_id for case in first}) == 500


def test_five_hundred_cases_have_every_kind() -> None:
    tried = {(case.group, case.kind) for case in itertools.islice(cases(STRUCK, 0), 500)}
    assert tried == {(group, kind) for group, kinds in STRUCK.items() for kind in kinds}
    assert {kind for group, kind in tried if group == "docker"} >= set(KILLS)
    assert len(nonsense.KINDS) == len(set(nonsense.KINDS)) == 48


def test_a_recording_that_cannot_be_read_is_a_failure_unless_somebody_else_wrote_to_it(tmp_path: Path) -> None:
    path = tmp_path / "r.msgpack"
    assert judged(path) == ([], [])
    data = hostile.GOLDEN.read_bytes()
    path.write_bytes(data)
    problems, events = judged(path)
    assert problems == []
    assert events
    path.write_bytes(data[:40] + b"?" + data[41:])
    assert [problem for problem, _ in judged(path)[0]] == [UNREADABLE]
    assert judged(path, tampered=True)[0] == []


@pytest.mark.parametrize("name", ["OverflowError", "Whatever"])
def test_a_class_that_no_page_names_is_a_failure(name: str, tmp_path: Path) -> None:
    payloads = [payload for _, payload in FrameParser().feed(hostile.GOLDEN.read_bytes())]
    lost = b"\xabSandboxLost"
    other = msgspec.msgpack.encode(name)
    assert any(lost in payload for payload in payloads)
    path = tmp_path / "r.msgpack"
    path.write_bytes(hostile.sealed([payload.replace(lost, other) for payload in payloads]))
    assert UNDOCUMENTED in [problem for problem, _ in judged(path)[0]]
    assert documented("SandboxLost")
    assert documented("SpotInterrupted")


def test_codes_that_are_not_promised_and_tracebacks_of_ours_are_failures(tmp_path: Path) -> None:
    victim = Victim(Home(tmp_path / "home"), tmp_path / "r.msgpack", Random(1), signals={9})
    for code, said, problems in (
        (0, "", 0),
        (-9, "", 0),
        (-11, "", 1),
        (120, "", 1),
        (1, OURS, 1),
        (1, PYTHON_S, 0),  # struck before a line of ours ran
        (1, IN_A_CHECKOUT, 0),
    ):
        assert len(processes.exit_problems(code, said, victim)) == problems


@pytest.mark.parametrize(
    ("method", "path", "what"),
    [
        ("POST", "/v1.41/containers/create?name=x", "create"),
        ("POST", "/containers/abc/start", "start"),
        ("POST", "/containers/abc/exec", "exec"),
        ("POST", "/exec/abc/start", "run"),
        ("GET", "/exec/abc/json", "state"),
        ("GET", "/v1.41/containers/json?all=1", "list"),
        ("GET", "/v1.41/containers/abc/json", "look"),
        ("DELETE", "/v1.41/containers/abc?v=True", "remove"),
        ("GET", "/version", "other"),
    ],
)
def test_the_proxy_knows_what_it_is_asked_for(method: str, path: str, what: str) -> None:
    assert nonsense.part(method, path) == what

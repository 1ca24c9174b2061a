"""What this machine can do, said once: a test whose need is not met is skipped with the reason."""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import inspect
import itertools
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import hypothesis
import pytest
from pytest_timeout import Settings

from taxtui.gc_tuning import COLLECT_AFTER
from taxtui.workloads.image import DEFAULT_IMAGE
from tests.support import waiting
from tests.support.loop_guard import LoopGuard
from tests.support.tracing import TRACED_CPU_S, TRACED_RUN_CPU_S, pause, traced

# In the background a shell has SIGINT and SIGQUIT ignored, and nohup SIGHUP; children inherit that, and the stand-ins'
# commands are children of these tests. A handler, unlike SIG_IGN, is reset to the default in children.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda number, frame: None)


gc.set_threshold(*COLLECT_AFTER)  # what is collected now is no garbage, and a test makes little
os.environ["COLUMNS"] = "80"  # tables are as wide as the terminal, which differs from one developer to the next

# What an example takes on a busy machine says nothing about it.
hypothesis.settings.register_profile("no clock", deadline=None, max_examples=40)
hypothesis.settings.load_profile("no clock")


@functools.cache
def _docker() -> str:
    if shutil.which("docker") is None:
        return "no docker client"
    found = subprocess.run(["docker", "version"], capture_output=True, check=False)
    if found.returncode != 0:
        return "no docker daemon"
    image = subprocess.run(["docker", "image", "inspect", DEFAULT_IMAGE], capture_output=True, check=False)
    return "" if image.returncode == 0 else "no sandbox image: taxtui setup"


@functools.cache
def _compose() -> str:
    if missing := _docker():
        return missing
    found = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False)
    return "" if found.returncode == 0 else "docker has no compose plugin"


@functools.cache
def _bwrap() -> str:
    from taxtui.substrates.local.bubblewrap import complaint

    return complaint()


def pytest_timeout_set_timer(item: pytest.Item, settings: Settings) -> None:
    """pytest-timeout's own hook: whoever waits knows until when, and gives up with a word a little before."""
    waiting.limit(settings.timeout)


@functools.cache
def _program(name: str) -> str:
    return "" if shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin") else f"no {name}"


NEEDS: dict[str, Callable[[], str]] = {
    "docker": _docker,
    "compose": _compose,
    "bwrap": _bwrap,
    **{name: functools.partial(_program, name) for name in ("tmux", "sshd", "busybox", "cloud-init")},
}


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers():
        need = NEEDS.get(mark.name.replace("_", "-"))
        missing = need() if need else ""
        if not missing:
            continue
        if os.environ.get("TAXTUI_REQUIRE_ALL"):  # CI is meant to have everything
            pytest.fail(f"CI must have this: {missing}")
        pytest.skip(missing)


@pytest.fixture(scope="session")
def _new_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A new name each time, which is made by whoever writes there: pytest would look at all that it has made before."""
    folder = tmp_path_factory.mktemp("xdg")
    return map(folder.joinpath, map(str, itertools.count()))


@pytest.fixture(autouse=True)
def _private_folders(_new_folders: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """State and data of a test never mix with the user's; the cache of fixtures is shared, being verified by hash."""
    folder = next(_new_folders)
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    monkeypatch.setenv("XDG_DATA_HOME", str(folder / "data"))


@pytest.fixture
async def unblocked_loop() -> AsyncIterator[None]:
    """Fails the test that blocks its event loop; coroutines get it unless they start processes or draw screens."""
    guard = LoopGuard()
    yield
    guard.close()
    if guard.blocked_at:
        pytest.fail(f"the event loop was blocked here:\n{guard.blocked_at}", pytrace=False)


TESTS = Path(__file__).parent
UNTRACED = {("taxtui", "tui"), ("docs",), ("benchmarks",), ("real_tools",)}
"""Folders whose tests do not count for the coverage gate: tracing them would double their cost."""


def _folder(path: Path) -> tuple[str, ...]:
    """Return the package that a test's file is about."""
    return path.relative_to(TESTS).parent.parts[:2]


def _computes(item: pytest.Item | pytest.Collector) -> bool:
    """Whether tests neither start processes nor draw screens."""
    return item.get_closest_marker("processes") is None and _folder(item.path) not in UNTRACED


def _gated(item: pytest.Item | pytest.Collector) -> AbstractContextManager[None]:
    cpu_s = TRACED_RUN_CPU_S if _folder(item.path) == ("taxtui", "runner") else TRACED_CPU_S
    return traced(cpu_s) if _computes(item) else contextlib.nullcontext()


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Item) -> Generator[None, object, object]:
    with _gated(pyfuncitem):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(request: pytest.FixtureRequest) -> Generator[None, object, object]:
    """Trace fixtures too. Pytest does not ask here for fixtures of the session."""
    with _gated(request.node):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Trace the imports in the first worker alone: all workers import the same."""
    if os.environ.get("PYTEST_XDIST_WORKER", "gw0") != "gw0":
        pause()
    try:
        return (yield)
    finally:
        pause()


SLOW_LIMIT_S = 1800
"""Of what is marked as slow: hundreds of real trials, kills or visits, many times as long beside a load."""


def pytest_configure(config: pytest.Config) -> None:
    if "PYTEST_XDIST_WORKER" in os.environ:
        # Nobody reads a worker's summary, and syrupy's compares every test that ran with every snapshot on the disk.
        config.option.no_summary = True
        atexit.register(os._exit, 0)  # it has told all: nobody needs a million objects taken apart one by one


def pytest_sessionfinish() -> None:
    gc.collect()  # what is never awaited or closed says so now
    gc.freeze()  # and pytest's five searches after this one have nothing to go through


def pytest_collection_finish() -> None:
    gc.freeze()  # what is imported and collected stays until the end: no search for garbage has to go through it


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put files with slow tests first in the part of each worker: tests begun last decide when all is done.

    ``worksteal`` gives each worker an equal part of the list. Slow tests of a file share fixtures, such as a cluster.
    """
    by_slow: dict[bool, list[pytest.Item]] = {True: [], False: []}
    for item in items:
        by_slow[item.get_closest_marker("slow") is not None].append(item)
    slow = [list(tests) for _, tests in itertools.groupby(by_slow[True], key=lambda item: item.path)]
    quick = by_slow[False]
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    parts = (-(-len(quick) // workers) * worker for worker in range(workers + 1))
    items[:] = []
    for worker, (first, last) in enumerate(itertools.pairwise(parts)):
        items += [*itertools.chain(*slow[worker::workers]), *quick[first:last]]
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.timeout(SLOW_LIMIT_S))
        if isinstance(item, pytest.Function) and _computes(item) and inspect.iscoroutinefunction(item.obj):
            item.fixturenames.insert(0, "unblocked_loop")

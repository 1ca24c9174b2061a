"""The shipped conformance suite on every substrate, each check a test: on real ones and on emulators."""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib.metadata
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, Self, cast

import pytest
import pytest_asyncio

from taxtui.plan.spec import SandboxSpec
from taxtui.sandboxes.conformance import Check, NotApplicable, checks
from taxtui.sandboxes.conformance.bench import Bench, Factory
from taxtui.sandboxes.protocol import Found, Marks, Sandbox, Substrate
from taxtui.sandboxes.registry import load
from taxtui.substrates.daytona import DaytonaOptions
from taxtui.substrates.daytona.substrate import DaytonaSubstrate
from taxtui.substrates.docker import DockerOptions
from taxtui.substrates.docker.substrate import DockerSubstrate
from taxtui.substrates.kubernetes.options import KubernetesOptions
from taxtui.substrates.kubernetes.substrate import KubernetesSubstrate
from taxtui.substrates.local import LocalOptions
from taxtui.substrates.local.substrate import LocalSubstrate
from taxtui.substrates.ssh.substrate import SshSubstrate
from taxtui.workloads.image import DEFAULT_IMAGE
from tests.support.standins.aws_setup import CREDENTIALS, standin, substrate
from tests.support.standins.daytona_standin import KEY, DaytonaStandin
from tests.support.standins.kubernetes_pool_standin import ACQUIRE, PoolStandin
from tests.support.standins.kubernetes_standin import KubernetesStandin
from tests.support.standins.private_sshd import ssh_box

pytestmark = pytest.mark.processes

TTL_S: Final = 3600.0
COMMANDS: Final = (
    *("exit codes", "streams", "exact bytes", "5 MB output", "standard input", "scripts", "surroundings"),
    *("commands are apart", "output like a protocol", "chatter between commands", "timeout"),
    *("timeout with closed streams", "a killed shell", "closing"),
)
"""Checks that ask nothing of how a sandbox comes and goes, and leave nothing running in it: they share a sandbox."""
CORE: Final = (
    *("check answers", "exit codes", "streams", "exact bytes", "5 MB output", "standard input", "timeout"),
    *("a killed shell", "from create to destroy", "destroy while a command runs", "find and reap", "deadline", "reset"),
)
"""Checks that a second runtime of the same adapter has to pass."""


class Opened(NamedTuple):
    """A place where substrates can be made, its emulator if it is one, and what is left there."""

    factory: Factory
    emulator: Any = None
    left: Callable[[], object] = lambda: None


class Place(NamedTuple):
    name: str
    open: Callable[[], AbstractAsyncContextManager[Opened]]
    marks: Sequence[pytest.MarkDecorator] = ()
    ttl_s: float | None = None
    acquire: str = "create"
    asked: Callable[[Check], bool] = lambda check: True


_SHARED = contextlib.ExitStack()


@pytest.fixture(scope="module", autouse=True)
def _environment() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch, _SHARED:
        for key, value in {**CREDENTIALS, "DAYTONA_API_KEY": KEY}.items():
            patch.setenv(key, value)
        yield
        _running.cache_clear()  # a worker that has left the module may come back to steal


@functools.cache
def _running(kind: str) -> Any:
    """An emulator that all checks use, because it takes long to start."""
    if kind == "ssh":
        return _SHARED.enter_context(ssh_box())
    # The suite opens more concurrent sessions than an agent's default allows.
    return _SHARED.enter_context(standin(kind, **({"sessions_limit": 4} if kind == "ecs" else {})))


@contextlib.asynccontextmanager
async def _here(factory: Factory) -> AsyncIterator[Opened]:
    yield Opened(factory)


def _local(isolation: Literal["bwrap", "plain"]) -> AbstractAsyncContextManager[Opened]:
    return _here(lambda: LocalSubstrate(LocalOptions(isolation=isolation)))


def _docker(runtime: str) -> AbstractAsyncContextManager[Opened]:
    found = subprocess.run(["docker", "info", "--format={{json .Runtimes}}"], capture_output=True, check=False)
    if f'"{runtime}"'.encode() not in found.stdout:
        pytest.skip(f"docker has no runtime {runtime}")
    return _here(lambda: DockerSubstrate(DockerOptions(runtime=runtime)))


@contextlib.asynccontextmanager
async def _kubernetes(made: KubernetesStandin, **options: Any) -> AsyncIterator[Opened]:
    async with made as server:
        path = str(server.kubeconfig)
        yield Opened(lambda: KubernetesSubstrate(KubernetesOptions(kubeconfig=path, **options)), server, server.left)


@contextlib.asynccontextmanager
async def _daytona() -> AsyncIterator[Opened]:
    async with DaytonaStandin() as server:
        yield Opened(lambda: DaytonaSubstrate(DaytonaOptions(api_url=server.url)), server, server.left)


@contextlib.asynccontextmanager
async def _aws(kind: str, **options: Any) -> AsyncIterator[Opened]:
    account = _running(kind)
    yield Opened(lambda: substrate(account, **options), account, account.leftovers)


@contextlib.asynccontextmanager
async def _ssh() -> AsyncIterator[Opened]:
    box = _running("ssh")
    yield Opened(lambda: SshSubstrate(box.options()), box, box.left)


@contextlib.asynccontextmanager
async def _harness(name: str, module: str) -> AsyncIterator[Opened]:
    pytest.importorskip(module, reason=f"{name} requires an extra, and Harbor Python 3.12 or newer")
    image = swerex_image() if name == "swerex" else ""
    if image.startswith(" "):
        pytest.skip(image.strip())
    kind: Any = load(name)
    try:
        yield Opened(lambda: kind(kind.Options(**({"image": image} if image else {}))))
    finally:
        gc.collect()  # a harness leaves pipes to the garbage collector


def _core(check: Check) -> bool:
    return check.name in CORE


def _core_without_sessions(check: Check) -> bool:
    return check.name in CORE and not (check.mode == "session" and check.name in COMMANDS)


bwrap, docker, compose, sshd = (getattr(pytest.mark, name) for name in ("bwrap", "docker", "compose", "sshd"))
unraisable = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
imports = (unraisable, pytest.mark.slow)  # it imports for seconds: one worker begins with all of its checks
PLACES: Final = (
    Place("bwrap", lambda: _local("bwrap"), [bwrap]),
    Place("plain", lambda: _local("plain")),
    Place("runc", lambda: _docker("runc"), [docker], 4.0),
    Place("runsc", lambda: _docker("runsc"), [docker], 4.0, asked=_core),
    Place("kubernetes", lambda: _kubernetes(KubernetesStandin()), ttl_s=2.0),
    Place("pool", lambda: _kubernetes(PoolStandin()), ttl_s=2.0, acquire=ACQUIRE),
    Place(
        "pool with volumes",
        lambda: _kubernetes(PoolStandin(volume=True), suspend=True),
        acquire=ACQUIRE,
        asked=lambda check: "suspend" in check.name,
    ),
    Place("daytona", _daytona, ttl_s=2.0),
    Place("ec2", lambda: _aws("ec2"), [sshd], 60.0),
    Place("ecs", lambda: _aws("ecs", sessions=4), ttl_s=3.0),
    Place("ssh", _ssh, [sshd], 3.0),
    Place("swerex", lambda: _harness("swerex", "swerex"), [docker, unraisable], asked=_core_without_sessions),
    Place("inspect", lambda: _harness("inspect", "inspect_ai"), [compose, *imports], asked=_core_without_sessions),
    Place("harbor", lambda: _harness("harbor", "harbor"), [compose, unraisable], asked=_core_without_sessions),
)


def asked(*, sharing: bool) -> list[Any]:
    """Each place with each check that it is asked for, of those that share a sandbox or of those that do not."""
    return [
        pytest.param(place, check, id=f"{place.name}-{check}", marks=place.marks)
        for place in PLACES
        for check in checks()
        if place.asked(check) and (check.name in COMMANDS) == sharing
    ]


_DOCKERFILE: Final = """FROM {base}
USER 0
COPY site /opt/harness
ENV PYTHONPATH=/opt/harness
COPY swerex-remote /usr/local/bin/
RUN chmod 755 /usr/local/bin/swerex-remote
USER 10001:10001
"""
_SERVER: Final = """#!/bin/sh
exec python3 -c 'from swerex.server import main; main()' "$@"
"""


def _needed(name: str) -> set[str]:
    """A distribution and all that it needs, as they are installed here."""
    seen, left = set[str](), [name]
    while left:
        each = left.pop()
        if each in seen:
            continue
        seen.add(each)
        for line in importlib.metadata.requires(each) or ():
            wanted, _, condition = line.partition(";")
            word = re.match(r"[A-Za-z0-9._-]+", wanted)
            assert word is not None
            with contextlib.suppress(importlib.metadata.PackageNotFoundError):
                if "extra" not in condition and importlib.metadata.distribution(word[0]):
                    left.append(word[0])
    return seen


def _copy(names: set[str], folder: Path) -> None:
    for name in names:
        distribution = importlib.metadata.distribution(name)
        for file in distribution.files or ():
            if ".." in file.parts or "__pycache__" in file.parts:
                continue
            target = folder / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(Path(str(distribution.locate_file(file))), target)


def _says(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60).stdout.strip()


@functools.cache
def swerex_image() -> str:
    """The name of taxtui's own image with SWE-ReX in it, or why there is none, with a blank in front."""
    if not _says("docker", "image", "inspect", "--format", "{{.Id}}", DEFAULT_IMAGE):
        return " no image: taxtui setup"
    name = f"taxtui-test-swerex:{importlib.metadata.version('swe-rex')}-{DEFAULT_IMAGE.rpartition(':')[2]}"
    if _says("docker", "image", "inspect", "--format", "{{.Id}}", name):
        return name
    ours = f"{sys.version_info.major}.{sys.version_info.minor}"
    program = "import sys; print('%d.%d' % sys.version_info[:2])"
    theirs = _says("docker", "run", "--rm", "--network=none", DEFAULT_IMAGE, "python3", "-c", program)
    if ours != theirs:
        return f" Python {ours} here, {theirs or 'none'} in the image: what is installed here does not run there"
    with tempfile.TemporaryDirectory() as folder:
        _copy(_needed("swe-rex"), Path(folder) / "site")
        (Path(folder) / "swerex-remote").write_text(_SERVER)
        (Path(folder) / "Dockerfile").write_text(_DOCKERFILE.format(base=DEFAULT_IMAGE))
        argv = ["docker", "build", "--network=none", "--quiet", "--tag", name, folder]
        subprocess.run(argv, capture_output=True, check=True, timeout=300)
    return name


async def passes(check: Check, opened: Opened, factory: Factory, **how: Any) -> None:
    """Run the check; its test is skipped where it has nothing to ask of this place."""
    before = opened.left()
    try:
        await check(factory, **how)
    except NotApplicable as reason:
        pytest.skip(str(reason))
    assert opened.left() == before


@pytest.mark.parametrize(("place", "check"), asked(sharing=False))
async def test_conformance(place: Place, check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    async with place.open() as opened:
        if check.name == "deadline" and hasattr(opened.emulator, "minute_s"):
            monkeypatch.setattr(opened.emulator, "minute_s", 2.0)  # the shortest life that the provider grants
        await passes(check, opened, opened.factory, short_ttl_s=place.ttl_s, acquire=place.acquire)


class Lent:
    """The substrate as a check of commands sees it: ``create`` gives the one sandbox that all of them share."""

    def __init__(self, substrate: Substrate, sandbox: Sandbox) -> None:
        self._substrate, self._sandbox = substrate, sandbox

    def __getattr__(self, name: str) -> object:
        return getattr(self._substrate, name)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Others go on with it."""

    async def create(self, spec: SandboxSpec, marks: Marks) -> Sandbox:
        return self._sandbox

    async def find(self, run_id: str) -> list[Found]:
        return []


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(request: pytest.FixtureRequest) -> AsyncIterator[tuple[Opened, Substrate]]:
    """A place, and its substrate with a sandbox that is made as for a check, and in the end is found no more."""
    async with request.param.open() as opened:
        before = opened.left()
        async with Bench(opened.factory, "exec", None, request.param.acquire) as bench:
            sandbox = await bench.create(bench.spec(ttl_s=TTL_S))
            try:
                yield opened, cast(Substrate, Lent(bench.substrate, sandbox))
            finally:
                await sandbox.destroy()
        assert opened.left() == before


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("shared", "check"), asked(sharing=True), indirect=["shared"])
async def test_conformance_of_commands(shared: tuple[Opened, Substrate], check: Check) -> None:
    opened, lent = shared
    await passes(check, opened, lambda: lent)

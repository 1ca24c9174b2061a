"""The shipped tiers, as data and for real: under bubblewrap with an empty environment, and in hardened containers."""

import email
import re
import secrets
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from email.message import Message
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from taxtui.plan.scenario import load_tier
from taxtui.plan.spec import FIXTURES_ENV, Step, Tier
from taxtui.workloads import fixtures, image

pytestmark = pytest.mark.processes

BASE = "taxtui-base:bookworm"
NONCE = secrets.token_hex(8)
HOSTILE_GIT_SETTINGS = """
color.ui=always core.pager=false status.branch=true status.showUntrackedFiles=all log.decorate=full diff.noprefix=true
"""

Run = Callable[[str], subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def folder() -> Path:
    return fixtures.ensure()


@pytest.fixture(scope="session")
def built() -> str:
    if subprocess.run(["docker", "image", "inspect", BASE], capture_output=True, check=False).returncode:
        pytest.skip(f"no image {BASE}; .ci/base-image makes it")
    return image.build(BASE)


@pytest.fixture
def bwrap(folder: Path, tmp_path: Path) -> Run:
    """A read-only machine, nothing in the environment, and a system-wide git configuration to stumble over."""
    for setting in HOSTILE_GIT_SETTINGS.split():
        subprocess.run(["git", "config", f"--file={tmp_path / 'gitconfig'}", *setting.split("=")], check=True)
    (tmp_path / "work").mkdir()
    variables = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": "/tmp/home",
        "GIT_CONFIG_SYSTEM": "/tmp/gitconfig",
        FIXTURES_ENV: "/tmp/fixtures",
        "TAXTUI_NONCE": NONCE,
    }
    argv = ["bwrap", "--unshare-all", "--die-with-parent", "--clearenv", "--uid", "1000", "--gid", "1000"]
    argv += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--dir", "/tmp/home"]
    argv += ["--ro-bind", str(folder), "/tmp/fixtures", "--ro-bind", str(tmp_path / "gitconfig"), "/tmp/gitconfig"]
    argv += ["--bind", str(tmp_path / "work"), "/tmp/work", "--chdir", "/tmp/work"]
    argv += [word for key, value in variables.items() for word in ("--setenv", key, value)]
    return lambda script: _run([*argv, "bash", "-c", script])


@pytest.fixture
def container(request: pytest.FixtureRequest, built: str) -> Iterator[Run]:
    """Our image, hardened as the docker substrate does it; by another runtime where a test asks for one."""
    name, runtime = f"taxtui-test-{secrets.token_hex(4)}", getattr(request, "param", "runc")
    if runtime not in subprocess.check_output(["docker", "info", "--format={{.Runtimes}}"], text=True):
        pytest.skip(f"docker has no runtime {runtime}")
    hardened = ["--network=none", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--pids-limit=512"]
    limits = ["--cpus=1", "--memory=1g", "--init"]
    start = ["docker", "run", "--detach", f"--name={name}", f"--runtime={runtime}", *hardened, *limits, built]
    subprocess.run(start, check=True, capture_output=True)
    try:
        yield lambda script: _run(["docker", "exec", f"--env=TAXTUI_NONCE={NONCE}", name, "bash", "-c", script])
    finally:
        subprocess.run(["docker", "rm", "--force", name], check=True, capture_output=True)


@pytest.mark.bwrap
@pytest.mark.parametrize("name", ["T0", "T1", "T2"])
def test_tier_under_bubblewrap(name: str, bwrap: Run) -> None:
    _trial(name, bwrap, "ls -A; test ! -d attrs-bug || git -C attrs-bug diff; test ! -d attrs || git -C attrs diff")
    if name == "T2":  # which notices that its fix is missing
        assert bwrap('cd attrs-bug && git apply -R "$TAXTUI_FIXTURES/nested-disabled-fix.patch"').returncode == 0
        with pytest.raises(AssertionError, match="pytest: exit 1"):
            _prove(next(step for step in load_tier(name).cycle if step.name == "pytest"), bwrap)


@pytest.mark.docker
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "container"), [("T0", "runc"), ("T1", "runsc"), ("T2", "runc")], indirect=["container"]
)
def test_tier_in_a_container(name: str, container: Run) -> None:
    _trial(name, container, "ls -A; test ! -d attrs-bug || git -C attrs-bug diff; git -C attrs diff", cycles=1)


@pytest.mark.docker
def test_in_the_image_the_preload_is_a_no_op_and_the_fixtures_are_whole_and_read_only(
    container: Run, folder: Path
) -> None:
    state = "stat -c '%n %Y' attrs attrs/.git attrs/.git/index 2>/dev/null || find attrs -newer /opt/taxtui/gitconfig"
    before = container(state).stdout
    assert container(load_tier("T1").preload).returncode == 0
    assert container(state).stdout == before
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert sorted(container('cd "$TAXTUI_FIXTURES" && find * -type f').stdout.split()) == files
    assert container('test -w "$TAXTUI_FIXTURES" || test -w "$TAXTUI_FIXTURES/wheels"').returncode == 1


@pytest.mark.parametrize("python", ["3.10", "3.11", "3.12", "3.13", "3.14"])
def test_the_wheels_are_complete_for_each_python(python: str, folder: Path) -> None:
    environment = {"python_version": python, "python_full_version": f"{python}.0", "sys_platform": "linux", "extra": ""}
    lines = [line for line in (folder / "wheels" / "requirements.txt").read_text().splitlines() if line[0] != "#"]
    pins = [Requirement(line.partition(" --hash")[0]) for line in lines]
    wanted = {pin.name: str(pin.specifier)[2:] for pin in pins if not pin.marker or pin.marker.evaluate(environment)}
    wheels = {wheel.name.partition("-")[0].replace("_", "-"): wheel for wheel in (folder / "wheels").glob("*.whl")}
    assert all(wheel.name.endswith("-none-any.whl") for wheel in wheels.values())
    for name, version in wanted.items():
        described = _metadata(wheels[name])
        assert described["Version"] == version
        assert SpecifierSet(described["Requires-Python"] or "").contains(python)
        for need in map(Requirement, described.get_all("Requires-Dist", [])):
            if not need.marker or need.marker.evaluate(environment):
                assert need.specifier.contains(wanted[need.name]), f"{name} needs {need}"


def _trial(name: str, run: Run, state: str, cycles: int = 2) -> None:
    """Preload, setup and cycles; the second finds everything as the first did."""
    tier = load_tier(name)
    if tier.preload:
        _prove(Step(name="preload", run=tier.preload), run)
    for step in tier.setup:
        _prove(step, run)
    before = run(state).stdout
    for _ in range(cycles):
        for step in tier.cycle:
            _prove(step, run)
        assert run(state).stdout == before


def _prove(step: Step, run: Run) -> None:
    done = run(step.run)
    told = f"{step.name}: exit {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    assert done.returncode == step.expect_exit, told
    assert step.expect_stdout.replace("{nonce}", NONCE) in done.stdout, told


def _metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (path,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(archive.read(path))


def _run(argv: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


@pytest.fixture(params=["T0", "T1", "T2"])
def tier(request: pytest.FixtureRequest) -> Tier:
    return load_tier(request.param)


def test_a_cycle_is_ten_different_actions(tier: Tier) -> None:
    assert len({step.run for step in tier.cycle}) == len({step.name for step in tier.cycle}) == len(tier.cycle) == 10


def test_the_first_action_echoes_the_nonce(tier: Tier) -> None:
    assert "$TAXTUI_NONCE" in tier.cycle[0].run
    assert "{nonce}" in tier.cycle[0].expect_stdout


def test_every_step_proves_that_it_worked(tier: Tier) -> None:
    unproven = [s.name for s in (*tier.setup, *tier.cycle) if not s.expect_stdout and s.expect_exit == 0]
    assert unproven == (["true"] if tier.name == "T0" else [])


def test_no_tier_asks_for_a_network(tier: Tier) -> None:
    assert not tier.network
    steps = [tier.preload, *(step.run for step in (*tier.setup, *tier.cycle))]
    assert not [run for run in steps if re.search(r"https?:|ssh:|git@", run)]


def test_the_tree_is_the_one_that_the_fixtures_are_checked_for() -> None:
    (log,) = (step for step in load_tier("T1").cycle if step.name == "git log")
    assert fixtures.TREE in log.expect_stdout
    assert load_tier("T2").setup[0].expect_stdout == fixtures.TREE

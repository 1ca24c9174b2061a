"""How every substrate's package is laid out, and what each of its files may import. Read from the source alone."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import taxtui
from taxtui.sandboxes import registry

ROOT = Path(taxtui.__file__).parent
SUBSTRATES = ROOT / "substrates"
POINTS = {point.name: point.value for point in entry_points(group=registry.GROUP) if point.module.startswith("taxtui.")}
ROOMS = sorted(path.parent for path in SUBSTRATES.rglob("substrate.py"))
HARNESSES = [SUBSTRATES / "harness" / f"{name}.py" for name in ("harbor", "inspect", "swerex")]
"""Substrates of one file, which share all that is around it."""
SHARED = [
    SUBSTRATES / "aws",
    SUBSTRATES / "harness",
]  # what several rooms have in common: options, failures and what else they do alike
FILES = sorted(SUBSTRATES.rglob("*.py"))
CLASSIFIERS = sorted(SUBSTRATES.rglob("failure.py"))

USES = (
    "taxtui.sandboxes",
    "taxtui.plan.spec",
    "taxtui.errors",
    "taxtui.workloads",
    "costmodel",
)
"""What a substrate may import of ours, besides its own package."""
DOES_IO = {
    "asyncio",
    "http",
    "os",
    "pathlib",
    "select",
    "shutil",
    "socket",
    "ssl",
    "subprocess",
    "threading",
    "time",
    "urllib",
}
CALLS_IO = {"open", "print", "input"}


def name_of(path: Path) -> str:
    return ".".join(path.with_suffix("").relative_to(ROOT.parent).parts)


def imports(path: Path) -> Iterator[str]:
    """Every module that a file imports, also inside functions and under ``TYPE_CHECKING``."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            assert node.level == 0, f"{path}: a relative import"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if (ROOT.parent / Path(*whole.split("."))).with_suffix(".py").is_file() else node.module


def within(module: str, packages: tuple[str, ...]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def label(path: Path) -> str:
    return str(path.relative_to(SUBSTRATES))


@pytest.mark.parametrize("name", POINTS)
def test_a_substrate_is_a_folder_or_a_file_and_is_called_after_its_name(name: str) -> None:
    module, _, kind = POINTS[name].partition(":")
    assert kind == f"{name.capitalize()}Substrate"
    path = ROOT.parent / Path(*module.split(".")).with_suffix(".py")
    assert path.parent in ROOMS or path in HARNESSES
    around = [path.parent / "__init__.py", path.parent / "options.py", path.parent / "sandbox.py", path]
    defined = {
        node.name
        for file in around
        if file.is_file()
        for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.ClassDef)
    }
    assert {f"{name.capitalize()}{suffix}" for suffix in ("Substrate", "Sandbox", "Options")} <= defined


@pytest.mark.parametrize("path", CLASSIFIERS, ids=label)
def test_a_classifier_imports_no_sdk_and_does_no_io(path: Path) -> None:
    pure = ("taxtui.errors", "taxtui.sandboxes.kit.refusal", "taxtui.substrates", "msgspec")
    foreign = {
        module
        for module in imports(path)
        if not within(module, pure) and (module.partition(".")[0] not in sys.stdlib_module_names or module in DOES_IO)
    }
    assert not foreign
    tree = ast.parse(path.read_text())
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.AsyncFunctionDef | ast.Await)]
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    assert not called & CALLS_IO


@pytest.mark.parametrize("path", CLASSIFIERS, ids=label)
def test_what_a_classifier_imports_of_its_package_is_as_pure(path: Path) -> None:
    """All that comes in with it, checked by the same words; the packages' own docstrings aside."""
    seen, left = set[str](), [path]
    while left:
        for module in imports(left.pop()):
            if within(module, ("taxtui.substrates",)) and module not in seen:
                seen.add(module)
                left.append((ROOT.parent / Path(*module.split("."))).with_suffix(".py"))
            assert within(module, ("taxtui", "msgspec")) or module.partition(".")[0] in sys.stdlib_module_names
            assert module not in DOES_IO


@pytest.mark.parametrize("path", FILES, ids=label)
def test_a_substrate_uses_what_an_author_of_one_may(path: Path) -> None:
    room = next(each for each in (*ROOMS, *SHARED, SUBSTRATES) if path.is_relative_to(each))
    own = (name_of(room), *(name_of(shared) for shared in SHARED if room.is_relative_to(shared)))
    ours = {module for module in imports(path) if within(module, ("taxtui", "costmodel"))}
    assert not {module for module in ours if not within(module, (*USES, *own))}


@pytest.mark.parametrize("path", [path for path in FILES if path.parent in SHARED], ids=label)
def test_what_rooms_share_knows_none_of_them(path: Path) -> None:
    rooms = tuple(name_of(room) for room in (*ROOMS, *HARNESSES))
    assert not {module for module in imports(path) if within(module, rooms) and module != name_of(path)}


def test_no_import_goes_in_a_circle_not_even_for_types() -> None:
    files = {name_of(path): path for path in FILES + sorted((ROOT / "sandboxes").rglob("*.py"))}
    graph = {name: {module for module in imports(path) if module in files} for name, path in files.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"a circle: {' → '.join(error.args[1])}")


@pytest.mark.parametrize("room", ROOMS, ids=label)
def test_dependencies_go_one_way(room: Path) -> None:
    """Options and failures import neither; a sandbox does not import its substrate."""
    below = {
        **{name: {"sandbox", "substrate"} for name in ("__init__", "options", "failure")},
        "sandbox": {"substrate"},
    }
    for path in room.glob("*.py"):
        above = {name_of(room / f"{name}.py") for name in below.get(path.stem, {"substrate"})}
        assert not above & set(imports(path)), path

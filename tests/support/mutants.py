"""Change one expression at a time and see whether a test fails: ``make mutants``.

A seeded sample of mutants is drawn over the rooms whose results are numbers, and each is written into a copy of the
checkout. A root's tests see no process but their own: a mutant of a kill may kill all. Mutants of the cost model meet
the pinned numbers first, then the tests that run the line, the most specific first, for a minute of their usual time. A
line that runs at the import has the tests of its module, and of files with its name. Unnoticed mutants are listed.
Left out: annotations, docstrings, decorators, messages, assertions (and ``strict`` of ``zip``), keywords of classes
that change no result, the comparison of ``a if a > b else b``, and the return of None in place of False.
"""

from __future__ import annotations

import argparse
import ast
import copy
import itertools
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Final, TypeGuard
from xml.etree import ElementTree

from coverage import CoverageData

from tests.support.tracing import ALL

ROOT: Final = Path(__file__).parents[2]
ROOMS: Final = (
    "costmodel/statistics",
    "costmodel/simulation",
    "costmodel/projection",
    "costmodel/recording",
    "taxtui/recording",
    "taxtui/sandboxes/kit",
)
TESTS: Final = (
    "tests/costmodel",
    "tests/taxtui/recording",
    "tests/taxtui/sandboxes",
    "tests/taxtui/report",
    "tests/taxtui/runner/test_identity.py",
    *(f"tests/taxtui/substrates/{name}" for name in ("daytona", "harness", "local", "ssh", "test_shipped.py")),
)
LARGE: Final = 1000  # from here on numbers are doubled: one more is too little to notice
PINNED: Final = "tests/costmodel/test_pinned.py"
FIRST: Final = 20
"""Tests that follow the pinned numbers: with the fewest lines of the rooms."""
MOST_S: Final = 60.0
"""Usual time of the tests that a mutant meets after the pinned numbers; one that survives them counts as a survivor."""
ALONE: Final = ["unshare", "--fork", "--pid", "--mount-proc", "--kill-child"] if os.geteuid() == 0 else []
PATIENCE: Final = 10
"""A test that takes so many times its usual time has noticed the mutant."""
START_S: Final = 20.0
NO_RESULT: Final = ("strict", "frozen", "slots", "gc")

OPPOSITES: Final[tuple[tuple[type[ast.cmpop], type[ast.cmpop]], ...]] = (
    (ast.Lt, ast.LtE),
    (ast.Gt, ast.GtE),
    (ast.Eq, ast.NotEq),
    (ast.Is, ast.IsNot),
    (ast.In, ast.NotIn),
)
COMPARISONS: Final = {**dict(OPPOSITES), **{other: one for one, other in OPPOSITES}}
OPERATORS: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
}


@dataclass(frozen=True)
class Mutant:
    """One change of one file: the changed source, its line, and what was changed in words."""

    file: str
    line: int
    change: str
    source: str


def _mutable(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the nodes of a module that decide a result: no annotation, no docstring, no message of an error."""
    stack: list[ast.AST] = list(tree.body)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Raise | ast.Assert | ast.Import | ast.ImportFrom | ast.JoinedStr):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.keyword) and node.arg in NO_RESULT:
            continue
        if _is_tie(node):
            stack += [node.body, node.orelse]
            continue
        yield node
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_params", "args") and not isinstance(
                node, ast.Call
            ):
                continue
            stack.extend(
                child for child in (value if isinstance(value, list) else [value]) if isinstance(child, ast.AST)
            )


def _is_tie(node: ast.AST) -> TypeGuard[ast.IfExp]:
    """Whether it is ``a if a > b else b``, where an equal ``b`` is as good as ``a``."""
    if not isinstance(node, ast.IfExp) or not isinstance(node.test, ast.Compare):
        return False
    compared = (node.test.left, *node.test.comparators)
    return {*map(ast.unparse, compared)} == {*map(ast.unparse, (node.body, node.orelse))}


def _change(node: ast.AST) -> str | None:
    """Change a node in place and say how, or leave it and return None."""
    match node:
        case ast.Compare(ops=[op, *_]) if type(op) in COMPARISONS:
            node.ops[0] = COMPARISONS[type(op)]()
            return f"{type(op).__name__} -> {type(node.ops[0]).__name__}"
        case ast.BinOp(op=op) if type(op) in OPERATORS:
            node.op = OPERATORS[type(op)]()
            return f"{type(op).__name__} -> {type(node.op).__name__}"
        case ast.BoolOp(op=op):
            node.op = ast.Or() if isinstance(op, ast.And) else ast.And()
            return f"{type(op).__name__} -> {type(node.op).__name__}"
        case ast.UnaryOp(op=ast.Not()):
            node.operand = ast.UnaryOp(op=ast.Not(), operand=node.operand)
            return "not removed"
        case ast.Constant(value=bool(value)):
            node.value = not value
            return f"{value} -> {not value}"
        case ast.Constant(value=int(value) | float(value)):
            node.value = value + 1 if abs(value) < LARGE else 2 * value
            return f"{value} -> {node.value}"
        case ast.If(test=test):
            node.test = ast.UnaryOp(op=ast.Not(), operand=test)
            return "condition negated"
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) not in ("None", "False"):
            node.value = ast.Constant(value=None)
            return "returns None"
    return None


def draw(root: Path, count: int, seed: int) -> list[Mutant]:
    """Draw mutants over all rooms, each place with the same chance."""
    places: list[tuple[str, int]] = []
    for room in ROOMS:
        for path in sorted((root / room).rglob("*.py")):
            nodes = list(_mutable(ast.parse(path.read_text(encoding="utf-8"))))
            file = str(path.relative_to(root))
            places += [(file, index) for index, node in enumerate(nodes) if _change(copy.deepcopy(node)) is not None]
    mutants = []
    for file, index in random.Random(seed).sample(places, min(count, len(places))):
        tree = ast.parse((root / file).read_text(encoding="utf-8"))
        node = list(_mutable(tree))[index]
        change = _change(node)
        assert change is not None
        line = getattr(node, "lineno", 0)
        mutants.append(Mutant(file, line, change, ast.unparse(ast.fix_missing_locations(tree))))
    return mutants


class Tests:
    """The tests of each line of the rooms, with their usual time."""

    def __init__(self, checkout: Path, workers: int) -> None:
        """Run all of ``TESTS`` once. Tests that fail or are skipped without a mutant are left out."""
        (checkout / ".rooms").write_text(f"[run]\nsource = {', '.join(ROOMS)}\n", encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "-n", str(workers), "--dist", "worksteal"]
        command += ["-m", "not slow and not real_tools", "--junitxml=times.xml"]
        command += [f"--cov={room}" for room in ROOMS]
        command += ["--cov-config=.rooms", "--cov-context=test", "--cov-report=", *TESTS]
        subprocess.run(command, cwd=checkout, check=False, env=_environment(checkout) | {ALL: "1"})
        self._seconds = _passed(checkout / "times.xml")
        self._tests: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
        self._lines: Counter[str] = Counter()
        data = CoverageData(str(checkout / ".coverage"))
        data.read()
        for name in data.measured_files():
            file = str(Path(name).relative_to(checkout))
            for line, contexts in data.contexts_by_lineno(name).items():
                for test in {context.partition("|")[0] for context in contexts}:
                    if _key(test) in self._seconds:
                        self._tests[file, line].add(test)
                        self._tests[file, 0].add(test)
                        self._lines[test] += 1

    def of(self, mutant: Mutant) -> list[list[str]]:
        """Return pinned numbers and the tests that run a line, or its module where it runs at the import, in parts."""
        found = self._tests.get((mutant.file, mutant.line), set())
        if not found:  # it runs at the import
            name = (ROOT / mutant.file).read_text("utf-8").splitlines()[mutant.line - 1].partition(":")[0]
            own = (t for t in self._lines if name[:1].strip() and name in (ROOT / t.partition("::")[0]).read_text())
            found = self._tests.get((mutant.file, 0), set()).union(own)
        pinned = [test for test in self._lines if test.startswith(PINNED) and mutant.file.startswith("costmodel")]
        ordered = sorted(found.difference(pinned), key=lambda test: (self._lines[test], test))
        ends = itertools.accumulate(map(self.seconds, ordered))
        others = [test for test, end in zip(ordered, ends, strict=True) if end - self.seconds(test) < MOST_S]
        return [part for part in (sorted(pinned, key=self.seconds), others[:FIRST], others[FIRST:]) if part]

    def notice(self, checkout: Path, mutant: Mutant) -> bool:
        """Return whether a test fails, or takes much longer than usual, with the mutant in place."""
        path = checkout / mutant.file
        original, status = path.read_bytes(), path.stat()
        path.write_text(mutant.source, encoding="utf-8")
        try:
            return not all(self._pass(checkout, part) for part in self.of(mutant))
        finally:
            path.write_bytes(original)
            os.utime(path, (status.st_atime, status.st_mtime))

    def _pass(self, checkout: Path, tests: Sequence[str]) -> bool:
        seconds = [self.seconds(test) for test in tests]
        command = [*ALONE, sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist"]
        command += [f"--timeout={PATIENCE * max(seconds) + START_S:.0f}", *tests]
        environment = _environment(checkout) | {"PYTHONDONTWRITEBYTECODE": "1"}  # no compiled mutant is left
        timeout_s = PATIENCE * sum(seconds) + START_S
        try:
            ended = subprocess.run(
                command, cwd=checkout, env=environment, capture_output=True, timeout=timeout_s, check=False
            )
        except subprocess.TimeoutExpired:
            return False
        return not ended.returncode

    def seconds(self, test: str) -> float:
        """Return the usual time of a test."""
        return self._seconds[_key(test)]


def _key(test: str) -> str:
    """Name a test as in JUnit's XML."""
    file, _, name = test.partition("::")
    return f"{file.removesuffix('.py').replace('/', '.')}.{name}"


def _passed(times: Path) -> dict[str, float]:
    """Return the seconds of each test that passed."""
    cases = ElementTree.parse(times).iter("testcase")
    return {
        f"{case.get('classname')}.{case.get('name')}": float(case.get("time", 0)) for case in cases if not len(case)
    }


def _environment(checkout: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(checkout)}


def _copy(folder: Path) -> Path:
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, files.split("\0")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).exists():
            shutil.copy2(ROOT / name, folder / name)
    return folder


def main() -> None:
    """Draw mutants, try each, and print each survivor at once, and the counts."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--count", type=int, default=200, help="Number of mutants.")
    options.add_argument("--seed", type=int, default=1, help="Seed of the sample.")
    options.add_argument("--workers", type=int, default=2, help="Copies of the checkout that are tried at a time.")
    chosen = options.parse_args()
    mutants = draw(ROOT, chosen.count, chosen.seed)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(chosen.workers) as pool:
        free: SimpleQueue[Path] = SimpleQueue()
        for number in range(chosen.workers):
            free.put(_copy(Path(folder, f"copy-{number}")))
        tests = Tests(Path(folder, "copy-0"), chosen.workers)

        def noticed(mutant: Mutant) -> bool:
            checkout = free.get()
            try:
                return tests.notice(checkout, mutant)
            finally:
                free.put(checkout)

        killed = 0
        for tried, (mutant, died) in enumerate(zip(mutants, pool.map(noticed, mutants), strict=True), 1):
            killed += died
            if not died:
                print(f"survived, of {tried}: {mutant.file}:{mutant.line}: {mutant.change}", flush=True)
    print(f"{killed} of {len(mutants)} mutants killed, {100 * killed / len(mutants):.1f} %")


if __name__ == "__main__":
    main()

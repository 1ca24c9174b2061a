"""Change one expression at a time and see whether a test fails: ``make mutants``.

A seeded sample of mutants is drawn over the rooms whose results are numbers. Each mutant is written into a copy of the
checkout, never into the checkout. Only tests that run the changed line are started, the most specific first. A mutant
that no test notices is listed as a survivor, with file and line.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Final

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
TESTS: Final = ("tests/costmodel", "tests/taxtui/recording", "tests/taxtui/sandboxes", "tests/taxtui/report")
MOST_SPECIFIC: Final = 40
"""Tests that are tried first: with the fewest lines of the rooms."""
TIMEOUT_S: Final = 600.0

COMPARISONS: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
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
        yield node
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_params", "args") and not isinstance(
                node, ast.Call
            ):
                continue
            stack.extend(
                child for child in (value if isinstance(value, list) else [value]) if isinstance(child, ast.AST)
            )


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
            node.value = value + 1
            return f"{value} -> {value + 1}"
        case ast.If(test=test):
            node.test = ast.UnaryOp(op=ast.Not(), operand=test)
            return "condition negated"
        case ast.Return(value=ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
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


def tests_by_line(checkout: Path, workers: int) -> dict[tuple[str, int], list[str]]:
    """Run the tests once and return, for each line of a room, the tests that run it, the most specific first."""
    arguments = [sys.executable, "-m", "pytest", "-q", "-n", str(workers), "-m", "not slow and not real_tools"]
    arguments += [
        "--cov",
        "--cov-context=test",
        "--cov-report=",
        *(test for test in TESTS if (checkout / test).exists()),
    ]
    subprocess.run(arguments, cwd=checkout, check=False, env={**os.environ, ALL: "1"})
    data = CoverageData(str(checkout / ".coverage"))
    data.read()
    tests: dict[tuple[str, int], set[str]] = defaultdict(set)
    lines_of_test: Counter[str] = Counter()
    for name in data.measured_files():
        file = str(Path(name).relative_to(checkout)) if Path(name).is_relative_to(checkout) else name
        for line, contexts in data.contexts_by_lineno(name).items():
            for context in contexts:
                if test := context.partition("|")[0]:
                    tests[file, line].add(test)
                    lines_of_test[test] += 1
    return {place: sorted(found, key=lambda test: (lines_of_test[test], test)) for place, found in tests.items()}


def verdict(checkout: Path, mutant: Mutant, tests: list[str]) -> str:
    """Run the tests of a mutant's line against it: ``killed``, ``survived`` or ``not covered``."""
    if not tests:
        return "not covered"
    path = checkout / mutant.file
    original = path.read_text(encoding="utf-8")
    path.write_text(mutant.source, encoding="utf-8")
    try:
        for chosen in filter(None, (tests[:MOST_SPECIFIC], tests[MOST_SPECIFIC:])):
            arguments = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *chosen]
            ended = subprocess.run(arguments, cwd=checkout, capture_output=True, timeout=TIMEOUT_S, check=False)
            if ended.returncode:
                return "killed"
        return "survived"
    except subprocess.TimeoutExpired:
        return "killed"
    finally:
        path.write_text(original, encoding="utf-8")


def _copy(folder: Path) -> Path:
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, files.split("\0")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).exists():
            shutil.copy2(ROOT / name, folder / name)
    return folder


def main() -> None:
    """Draw mutants, try each, and print counts and survivors."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--count", type=int, default=200, help="Number of mutants.")
    options.add_argument("--seed", type=int, default=1, help="Seed of the sample.")
    options.add_argument("--workers", type=int, default=2, help="Copies of the checkout that are tried at a time.")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(chosen.workers):
            copies.put(_copy(Path(folder) / f"copy-{number}"))
        first = copies.get()
        tests = tests_by_line(first, chosen.workers)
        copies.put(first)

        def try_one(mutant: Mutant) -> str:
            checkout = copies.get()
            try:
                return verdict(checkout, mutant, tests.get((mutant.file, mutant.line), []))
            finally:
                copies.put(checkout)

        mutants = draw(ROOT, chosen.count, chosen.seed)
        with ThreadPoolExecutor(chosen.workers) as pool:
            verdicts = list(pool.map(try_one, mutants))
    for mutant, result in zip(mutants, verdicts, strict=True):
        if result != "killed":
            print(f"{result}: {mutant.file}:{mutant.line}: {mutant.change}")
    counts = Counter(verdicts)
    print(f"{counts['killed']} of {len(mutants)} mutants killed, {100 * counts['killed'] / len(mutants):.1f} %")


if __name__ == "__main__":
    main()

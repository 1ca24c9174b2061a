"""A lint: no widget, border, tooltip or page of taxtui interprets markup in a text that the source does not contain."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest
import textual.widgets

ROOT = Path(__file__).parents[2] / "taxtui"
PARSED = {"border_title", "border_subtitle", "tooltip"}
"""What Textual reads as markup where it is set to a str."""
HTML = {"report/page/content.py": 1, "report/page/shell.py": 4, "report/page/views.py": 2}
"""Where text is said to be HTML, and how often: our own style sheet, script and drawings; cells of escaped text."""


@functools.cache
def takes_markup(name: str) -> bool:
    """Whether a widget of Textual's reads markup unless it is told not to."""
    widget = getattr(textual.widgets, name, None)
    return isinstance(widget, type) and "markup" in inspect.signature(widget).parameters


def written_out(value: ast.expr, texts: set[str]) -> bool:
    """Whether a value is a text in the source itself, or one that is no markup."""
    match value:
        case ast.Constant():
            return True
        case ast.Name(id=name):
            return name.isupper() or name in texts
        case ast.IfExp(body=body, orelse=orelse):
            return written_out(body, texts) and written_out(orelse, texts)
        case ast.Call(func=ast.Name(id="Text")):
            return True
        case ast.Attribute(attr=attr):
            return attr in texts
    return False


def of_type_text(tree: ast.AST) -> set[str]:
    """Names that are annotated as, or set to, a Text."""
    names = set()
    for node in ast.walk(tree):
        match node:
            case ast.arg(arg=name, annotation=ast.Name(id="Text")):
                names.add(name)
            case ast.Assign(targets=targets, value=ast.Call(func=ast.Name(id="Text"))):
                names |= {each.attr for each in targets if isinstance(each, ast.Attribute)}
    return names


def faults(source: str) -> Iterator[str]:
    """Each place where a text that is not written out could be read as markup."""
    tree = ast.parse(source)
    texts = of_type_text(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords) if takes_markup(name):
                off = any(each.arg == "markup" and ast.unparse(each.value) == "False" for each in keywords)
                if not off and not (args and all(written_out(each, texts) for each in args)):
                    yield f"{node.lineno}: {name} without markup=False"
            case ast.Call(func=ast.Name(id="Button"), args=[label, *_]) if not written_out(label, texts):
                yield f"{node.lineno}: a label that is no Text"
            case ast.Assign(targets=targets, value=value) if not written_out(value, texts):
                for target in targets:
                    if isinstance(target, ast.Attribute) and target.attr in PARSED:
                        yield f"{node.lineno}: {target.attr} is no Text"
            case ast.ClassDef(bases=[ast.Name(id=name), *_]) if takes_markup(name):
                made = [each for each in ast.walk(node) if isinstance(each, ast.Call)]
                calls = [each for each in made if ast.unparse(each.func) == "super().__init__"]
                if not any("markup=False" in ast.unparse(each) for each in calls):
                    yield f"{node.lineno}: {node.name} without markup=False"
            case ast.Attribute(attr="from_markup") | ast.keyword(arg="markup", value=ast.Constant(value=True)):
                yield f"{getattr(node, 'lineno', 0)}: markup"
            case ast.ImportFrom(module="rich" | "rich.markup" | "textual.markup" | "rich.console"):
                yield f"{node.lineno}: {ast.unparse(node)}"


def test_no_widget_border_or_tooltip_reads_markup() -> None:
    paths = sorted(ROOT.rglob("*.py"))
    assert len(paths) > 200
    found = [f"{path.relative_to(ROOT)}:{fault}" for path in paths for fault in faults(path.read_text())]
    assert found == []


def test_html_is_only_what_we_have_made() -> None:
    said = {}
    for path in sorted(ROOT.rglob("*.py")):
        calls = (node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
        if count := sum(getattr(call, "attr", getattr(call, "id", "")) == "Markup" for call in calls):
            said[str(path.relative_to(ROOT))] = count
    assert said == HTML
    assert "autoescape=True" in (ROOT / "report/page/shell.py").read_text()
    templates = [*(ROOT / "report/page/templates").rglob("*")]
    assert templates
    for template in templates:
        assert "safe" not in template.read_text().split("|"), template


@pytest.mark.parametrize(
    ("source", "faulty"),
    [
        ("Static(name)", True),
        ("Label(f'{name}')", True),
        ("Button(label)", True),
        ("class A(Static):\n    def __init__(self): super().__init__(id='x')", True),
        ("self.border_title = self._name = name", True),
        ("Text.from_markup(name)", True),
        ("Static(name, markup=False)", False),
        ("Label('Budget')", False),
        ("self.border_title = Text(name)", False),
    ],
)
def test_the_lint_finds_markup_and_nothing_else(source: str, faulty: bool) -> None:
    assert bool(list(faults(source))) == faulty

"""The pages hang together: links, substrates, the reader of recordings, price sheets, manifests, and the site."""

from __future__ import annotations

import ast
import importlib
import os
import re
import shlex
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from kubernetes.client import models

import costmodel
from costmodel.recording import events
from costmodel.recording.follower import Follower
from taxtui import shipped
from taxtui.sandboxes import registry
from tests.docs.pages import DOCS, PAGES, README, ROOT, anchors, blocks, name_of, page_of, prose, text_of
from tests.support.command_line import printed

LINK = events.Link.__struct_config__.tag
"""The kind of what frames alone know: their place in the chain."""

SUBSTRATES = tuple(shipped.SUBSTRATES)


def test_the_pages_are_short() -> None:
    assert len(text_of(README).split()) <= 700
    pages = sorted(DOCS.rglob("*.md"))
    assert len(pages) <= 22
    assert sum(len(text_of(page).split()) for page in pages) <= 22_000


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", prose(page)):
        file, _, anchor = target.partition("#")
        found = (page.parent / file).resolve() if file else page
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), target


@pytest.mark.parametrize("name", SUBSTRATES)
def test_a_substrates_page_has_its_options_and_what_is_verified(name: str) -> None:
    page = text_of(page_of(name))
    for heading in ("# Options", "# Verified", "# Not verified", "# What can go wrong"):
        assert heading in page
    # By the options' own module: an SDK may need another Python than this one.
    (point,) = entry_points(group=registry.GROUP, name=name)
    kind, package = f"{name.capitalize()}Options", point.module.rpartition(".")[0]
    modules = package, package.rpartition(".")[0], f"{package}.options"  # the first that has the options
    found = (vars(importlib.import_module(module)).get(kind) for module in modules)
    fields = msgspec.structs.fields(next(filter(None, found)))
    missing = [field.name for field in fields if f"`{field.name}`" not in page]
    assert missing == []


def test_every_substrate_has_a_page() -> None:
    assert set(SUBSTRATES) <= set(registry.names())
    assert {page_of(name) for name in SUBSTRATES} == set((DOCS / "substrates").glob("*.md"))


@pytest.mark.parametrize("name", ["small", "run"])
def test_the_reader_of_the_format_page_reads_what_taxtui_reads(name: str) -> None:
    path, told = ROOT / "recordings" / f"{name}.msgpack", []
    with Follower(path) as follower:
        while batch := follower.poll():
            told += [msgspec.msgpack.decode(msgspec.msgpack.encode(event)) for event in batch]
    [source] = blocks("recording-format.md", "python")
    reader: dict[str, Any] = {}
    exec(compile(source, "recording-format.md", "exec"), reader)
    read = [event for event in reader["events"](path) if event[0] != LINK]
    assert read == [event[: len(raw)] for raw, event in zip(read, told, strict=True)]  # fields were appended since
    assert 0 < reader["mean_held_s"](path) < 60


def test_the_sheet_the_profile_and_the_provider_of_the_page_are_some(tmp_path: Path) -> None:
    sheet, profile, provider, figures = blocks("command-line.md", "toml")
    (tmp_path / "acme-prices.toml").write_text(sheet)
    prices = costmodel.load_prices(tmp_path / "acme-prices.toml")
    assert [price.substrate for price in prices.sandboxes] == ["acme"]
    (tmp_path / "acme-limits.toml").write_text(profile)
    assert costmodel.load_profile(tmp_path / "acme-limits.toml").concurrent == 5000
    (tmp_path / "acme.toml").write_text(provider)
    files = f"profile={tmp_path / 'acme-limits.toml'},prices={tmp_path / 'acme-prices.toml'}"
    found = costmodel.load_provider(f"{tmp_path / 'acme.toml'}:slowdown=1..1.3,{files}")
    assert found.slowdown.high == 1.3
    assert found.profile is not None
    assert found.prices is not None
    (tmp_path / "figures.toml").write_text(figures)
    (figure,) = costmodel.load(tmp_path / "figures.toml").figures
    assert (figure.substrate, figure.p50, figure.samples) == ("acme", 0.021, 1000)


def test_every_value_of_the_shipped_question_has_a_source() -> None:
    document = tomllib.loads((ROOT / "scenarios/training/lab-question.toml").read_text(encoding="utf-8"))
    sources, places = document.pop("sources"), document.pop("at")
    tables = [*document.values(), *(table for place in places.values() for table in place.values())]
    assert {key for table in tables for key in table} - {"compose"} == set(sources)


PAGE = re.compile(r"(?<![\w*./-])[\w./-]+\.md\b")


def test_every_page_that_code_mentions_is_in_the_repository() -> None:
    for folder in ("costmodel", "taxtui", "scenarios"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".toml", ".tcss"):
                pages = PAGE.findall(path.read_text(encoding="utf-8"))
                assert [page for page in pages if not (ROOT / page.lstrip("/")).is_file()] == [], path


def test_every_guarantee_names_a_test_that_exists() -> None:
    text = (ROOT / "tests/GUARANTEES.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (?!\*\*|guarantee|-)(.+?) \| (.*) \|$", text, re.MULTILINE)
    assert len(rows) > 25
    for guarantee, test in rows:
        path, _, name = test.strip("`").partition("::")
        assert (ROOT / path).is_file(), guarantee
        names = [node.name for node in ast.walk(ast.parse((ROOT / path).read_text())) if hasattr(node, "name")]
        assert name in names, guarantee


@pytest.mark.slow
def test_the_site_has_every_page_and_fetches_nothing_from_elsewhere(tmp_path: Path) -> None:
    """It is built strictly and without a network: what asks for anything from outside is refused."""
    nowhere = dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), "http://127.0.0.1:9")
    environment = os.environ | nowhere | {"NO_MKDOCS_2_WARNING": "1"}
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(build, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    wanted = {path.relative_to(DOCS).with_suffix(".html") for path in DOCS.rglob("*.md")}
    assert wanted <= {path.relative_to(tmp_path) for path in tmp_path.rglob("*.html")}
    tags = r"""<(?:script|img|iframe|link rel="(?:stylesheet|preconnect)")[^>]*(?:src|href)="https?:[^"]*"""
    assert {path.name: told for path in tmp_path.rglob("*.html") if (told := re.findall(tags, path.read_text()))} == {}


IN_CLUSTER = DOCS / "in-cluster"


def manifest(name: str) -> dict[str, Any]:
    [document] = yaml.safe_load_all((IN_CLUSTER / name).read_text())
    return document


@pytest.mark.parametrize("name", sorted(path.name for path in IN_CLUSTER.glob("*.yaml")))
def test_a_manifest_has_known_fields_of_the_right_types(name: str) -> None:
    """Each field is known to its API, and of its type: unknown fields are refused."""
    found = manifest(name)
    if found["kind"] == "RayJob":
        cluster = found["spec"]["rayClusterSpec"]
        for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
            models.V1PodTemplateSpec.model_validate(group["template"], strict=True)
    else:
        getattr(models, f"V1{found['kind']}").model_validate(found, strict=True)


def test_what_they_run_is_a_command_of_taxtui() -> None:
    [container] = manifest("job.yaml")["spec"]["template"]["spec"]["containers"]
    ray = manifest("rayjob.yaml")["spec"]
    job = manifest("canary.yaml")["spec"]["jobTemplate"]["spec"]
    [canary] = job["template"]["spec"]["containers"]
    assert job["backoffLimit"] == 0  # a canary above its limit is a result
    for words in (container["args"], canary["args"], shlex.split(ray["entrypoint"])):
        assert words[0] == "taxtui"
        told = printed(*words[1:], "--help")
        asked = {word.partition("=")[0] for word in words[2:] if word.startswith("--")}
        assert [option for option in asked if option not in told] == []


def test_the_ray_job_has_a_node_for_each_worker_and_the_ray_of_the_image() -> None:
    spec = manifest("rayjob.yaml")["spec"]
    cluster, words = spec["rayClusterSpec"], shlex.split(spec["entrypoint"])
    [group] = cluster["workerGroupSpecs"]
    workers = int(words[words.index("--processes") + 1])
    assert workers == group["replicas"] == group["minReplicas"] == group["maxReplicas"]
    assert cluster["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
    assert f"ARG RAY={cluster['rayVersion']}\n" in (IN_CLUSTER / "Dockerfile").read_text()
    assert f"\nray=={cluster['rayVersion']} " in (ROOT / ".ci" / "constraints.txt").read_text()


def test_the_image_copies_what_the_wheel_is_made_of() -> None:
    copied = re.findall(r"^COPY (.+) \S+$", (IN_CLUSTER / "Dockerfile").read_text(), re.MULTILINE)
    names = {name for line in copied for name in line.split()}
    assert names == {"pyproject.toml", "README.md", "LICENSE", "taxtui", "costmodel", "scenarios", "recordings"}
    assert [name for name in names if not (ROOT / name).exists()] == []

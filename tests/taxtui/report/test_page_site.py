"""A site: every recording of a folder beside the others, with the cost frontier and what is missing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from costmodel import TrainingRun, load, load_prices, project
from costmodel.analysis.ranking import answer_of
from taxtui.commands.site import command
from taxtui.errors import RecordingError, UsageError
from taxtui.report.page import content
from taxtui.report.page.figures import frontier
from taxtui.report.page.figures.frontier import OFF, ON, TIED, PlaceStanding, standings
from taxtui.report.page.palette import colours
from taxtui.report.page.providers import address_of
from tests.support.cost_model.costmodel_files import S, cell, trial, write
from tests.support.documents.page_recordings import price_sheet, recordings

DEMAND = TrainingRun(trajectories=1_000_000, workers=500)


@pytest.fixture(autouse=True)
def _without_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "inline_svg", lambda panel: "")


def site(*arguments: object) -> tuple[str, str]:
    result = CliRunner().invoke(command, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout, result.stderr


def works(folder: Path, **usd: float) -> dict[str, list[PlaceStanding]]:
    prices = load_prices(price_sheet(folder, **usd)) if usd else None
    rows = project([load(path) for path in sorted(folder.glob("*.msgpack"))], DEMAND, prices)
    return {line.name: standings(line) for line in answer_of(rows).lines}


@pytest.mark.parametrize(("docker", "local", "frontier_of_docker"), [(1.0, 1.0, OFF), (0.01, 5.0, ON)])
def test_a_substrate_that_another_beats_in_both_is_off_the_frontier(
    tmp_path: Path, docker: float, local: float, frontier_of_docker: str
) -> None:
    recordings(tmp_path)
    for group in works(tmp_path, docker=docker, local=local).values():
        assert {item.place.label: item.frontier for item in group} == {"docker": frontier_of_docker, "local": ON}


def test_places_that_cannot_be_told_apart_tie(tmp_path: Path) -> None:
    trials = [trial(n, cell=n % 2, create=S + (n * 7919 % 13) * S // 10) for n in range(40)]
    write(tmp_path / "r.msgpack", trials, cell(0), cell(1, substrate="local"))
    (own,) = works(tmp_path, docker=1.0, local=1.0).values()
    assert {one.frontier for one in own} == {ON, TIED}


def test_gaps_are_named_and_end_nothing(tmp_path: Path) -> None:
    first = recordings(tmp_path)[0]
    (tmp_path / "copy.msgpack").write_bytes(first.read_bytes())
    (tmp_path / "bad<i>.msgpack").write_bytes(b"no recording")
    write(tmp_path / "empty.msgpack", [], cell(0), run_id="empty")
    write(tmp_path / "index.msgpack", [trial(n) for n in range(3)], run_id="index")
    torn = [trial(n, cell=0) for n in range(4)] + [trial(4, cell=1, outcome="failed")]
    write(tmp_path / "torn.msgpack", torn, cell(0, tier="T3"), cell(1, tier="T4"), run_id="torn", complete=False)
    prices = price_sheet(tmp_path, docker=1.0, local=1.0)
    prices.write_text(prices.read_text().replace('"local"', '"modal"'))
    out = tmp_path / "site"
    (tmp_path / "vendor.toml").write_text(f'{HEAD}[[figures]]\nsubstrate = "x"\n')
    said, warned = site(tmp_path, "-o", out, "--prices", prices)
    assert said == f"{out / 'index.html'}\n"
    index = (out / "index.html").read_text()
    gaps = index.partition("<h2>Gaps</h2>")[2]
    for gap in (
        "<strong>bad&lt;i&gt;.msgpack</strong>: bad&lt;i&gt;.msgpack: not a taxtui recording",
        "vendor.toml</strong>: vendor.toml:3: figures[1]: object missing required field `quantity`",
        "<strong>run-1.msgpack</strong>: holds the same run as copy.msgpack",
        "<strong>empty.msgpack</strong>: no trial has ended",
        "<strong>torn.msgpack</strong>: INCOMPLETE",
        "docker T4 3 exec c1</strong>: no trial succeeded",
        "<strong>local</strong>: no price: not among the dollars",
    ):
        assert gap in gaps
    assert "prices.toml" not in gaps
    assert "run-1.msgpack: holds the same run as copy.msgpack" in warned
    pages = ["copy.html", "index-2.html", "run-2.html", "torn.html"]
    assert sorted(path.name for path in out.iterdir()) == sorted([*pages, "index.html"])
    assert re.findall(r'<th scope="row"><a href="([^"]+)"', index) == pages


HEAD = 'provenance = "published"\ndate = 2026-11-01\n'
VENDOR = f"""{HEAD}
source = "https://acme.example/benchmarks"
[[figures]]
substrate = "acme<b>"
quantity = "dispatch"
unit = "s"
measure = "round trip of `true`"
concurrency = 100
samples = 1000
p50 = 0.02
p95 = 0.05
[[figures]]
substrate = "acme<b>"
quantity = "price"
unit = "USD/vCPU-hour"
measure = "vCPU"
low = 0.01
high = 0.03
source = "javascript:alert(1)"
[[starts]]
substrate = "acme<b>"
measure = "until first command"
concurrency = 100
p50 = 1.5
"""


def section(index: str, name: str) -> str:
    found = re.search(rf'<section id="{name}">(.*?)</section>', index, re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", found[1]).split())


def test_a_vendor_adds_itself_by_one_file(tmp_path: Path) -> None:
    (tmp_path / "acme.toml").write_text(VENDOR)
    site(tmp_path, "-o", tmp_path / "site")
    index = (tmp_path / "site" / "index.html").read_text()
    assert [path.name for path in (tmp_path / "site").iterdir()] == ["index.html"]
    assert "<b>" not in index
    assert "javascript:alert(1)</td>" in index  # as text, and not as a link
    assert 'href="https://acme.example/benchmarks"' in index
    dispatch = section(index, "provider-dispatch")
    row = "acme&lt;b&gt; published round trip of `true` p50 20.0 ms p95 50.0 ms 100 1,000 2026-11-01"
    assert row in dispatch
    assert "acme&lt;b&gt; published until first command p50 1.50 s 100 – 2026-11-01" in section(index, "provider-start")
    assert "0.01 USD/vCPU-hour … 0.03 USD/vCPU-hour" in section(index, "provider-price")
    assert 'id="answer"' not in index


def test_recordings_stand_beside_published_figures_with_their_intervals(tmp_path: Path) -> None:
    recordings(tmp_path)
    imported = cell(substrate="e2b", provenance="imported")
    write(tmp_path / "logs.msgpack", [trial(n) for n in range(9)], imported, run_id="logs")
    site(tmp_path, "-o", tmp_path / "site")
    index = (tmp_path / "site" / "index.html").read_text()
    assert "No price is given" in index
    assert 'id="frontier"' not in index
    assert frontier.figure(works(tmp_path), colours(["docker", "local"])) is None
    assert "None: every recording of the folder is complete" in index
    dispatch = section(index, "provider-dispatch")
    assert re.search(r"docker measured T1 x 50 exec p50 40\.0 ms (±[\d.]+|\([\d.]+–[\d.]+\)) p95 ", dispatch)
    assert "T1 x 10" not in dispatch  # the cell with more commands of this mode stands for both
    assert "daytona published round trip of a printing command, from a laptop p50 1.13 s 250 –" in dispatch
    failures = section(index, "provider-failures")
    assert re.search(r"docker measured T1 x 50 exec [\d.]+ % (±[\d.]+|\([\d.]+–[\d.]+\)) of trials", failures)
    assert "e2b imported" in section(index, "provider-start")
    assert 'href="logs.html"' in index
    assert "e2b published" in section(index, "provider-limit")


def test_a_source_is_a_link_of_https_alone() -> None:
    assert address_of("github.com/a/b#7: note") == "https://github.com/a/b/issues/7"
    assert address_of("github.com/a/b, raw samples") == "https://github.com/a/b"
    assert address_of("arXiv 2607.05471 (x)") == "https://arxiv.org/abs/2607.05471"
    assert address_of("see https://a.example/b?c=1; other") == "https://a.example/b?c=1"
    assert not any(map(address_of, ("javascript:alert(1)", "http://a.example", "our bill")))


def test_a_folder_without_recordings_and_one_that_is_in_use_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=r"holds no recording; taxtui run -o .*NAME\.msgpack"):
        site(tmp_path, "-o", tmp_path / "site")
    for name in ("a", "b"):
        (tmp_path / f"{name}.msgpack").write_bytes(b"no recording")
    with pytest.raises(RecordingError) as caught:
        site(tmp_path, "-o", tmp_path / "site")
    assert "holds no recording that can be compared (and 1 more): a.msgpack: a.msgpack: not" in str(caught.value)
    assert "taxtui run" not in str(caught.value)
    for name in ("a", "b"):
        (tmp_path / f"{name}.msgpack").unlink()
    write(tmp_path / "r.msgpack", [trial(0)])
    with pytest.raises(UsageError, match="is not empty; choose another folder with -o"):
        site(tmp_path, "-o", tmp_path)
    assert not (tmp_path / "site").exists()

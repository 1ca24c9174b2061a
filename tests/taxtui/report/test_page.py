"""A page: one file that needs nothing else, says what the tables say, and obeys no text from a recording."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
import shutil
import subprocess
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest

from taxtui.report.measured.rows import rows_of
from taxtui.report.measured.samples import read_samples
from taxtui.report.page import site
from taxtui.report.page.content import page
from taxtui.report.page.material import Material
from tests.support.command_line import printed
from tests.support.cost_model.costmodel_files import S, cell, trial, write
from tests.support.documents.page_recordings import price_sheet, recordings

HOSTILE = "<script>alert(1)</script>\"'>{{ 7*7 }}&amp;]]>$x$\x1b[31m\u202e漢字"


class Reader(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self._open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        self._open = [tag]

    def handle_data(self, data: str) -> None:
        (self.scripts if self._open == ["script"] else self.texts).append(data)

    def handle_endtag(self, tag: str) -> None:
        self._open = []

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


def page_of(*paths: Path) -> str:
    cells, sources = read_samples(paths)
    rows = rows_of(cells)
    return page(Material(rows, sources, paths, len(cells) - len(rows)))


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> str:
    return page_of(*recordings(tmp_path_factory.mktemp("pages")))


@pytest.fixture(scope="module")
def read(html: str) -> Reader:
    return Reader(html)


def test_the_answer_comes_first_with_its_sentence_and_a_row_per_workload(read: Reader) -> None:
    answer = read.text.partition("Time of one delivered trajectory by cause, T1")[0]
    assert "docker exec takes" in read.text.partition("Time that one delivered trajectory occupies a worker")[0]
    for workload in ("T1 10 exec", "T1 10 session", "T1 50 exec", "T1 50 session"):
        assert workload in answer
    for head in ("docker time", "docker ratio", "local time"):
        assert head in answer


def test_nothing_is_fetched_and_nothing_but_our_script_may_run(html: str, read: Reader) -> None:
    loaded = [attributes.get("src", "") + attributes.get("href", "") for _, attributes in read.elements]
    assert not [url for url in loaded if url and not url.startswith(("data:", "#"))]
    (script,) = read.scripts
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = [one["content"] for one in read.all("meta") if one.get("http-equiv") == "Content-Security-Policy"]
    assert policy == f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"
    assert "@import" not in html


def test_every_figure_is_a_picture_with_text_and_the_numbers_are_a_csv(html: str, read: Reader) -> None:
    pictures = [one for one in read.all("svg") if one.get("role") == "img"]
    assert len(pictures) >= 2
    ids = [one["id"] for _, one in read.elements if "id" in one]
    assert len(set(ids)) == len(ids)
    for one in pictures:
        assert set(one["aria-labelledby"].split()) <= set(ids)
    assert set(re.findall(r'(?:url\(|href=")#([^")]+)', html)) <= set(ids)
    [link] = [one for one in read.all("a") if "download" in one]
    rows = list(csv.reader(io.StringIO(base64.b64decode(link["href"].partition("base64,")[2]).decode())))
    assert len(rows) > 1
    assert len({len(row) for row in rows}) == 1


def test_the_same_recordings_give_the_same_bytes_which_tell_no_folder(read: Reader, html: str, tmp_path: Path) -> None:
    paths = recordings(tmp_path)
    assert page_of(*paths) == html
    for path in paths:
        assert hashlib.sha256(path.read_bytes()).hexdigest() in read.text
    assert "taxtui report run-1.msgpack run-2.msgpack --html page.html" in read.text
    assert str(tmp_path.parent) not in html


def test_no_text_of_a_recording_is_obeyed(tmp_path: Path) -> None:
    long = "x" * 400  # and a little more: what a recording may hold
    cells = [
        cell(0, substrate=HOSTILE, variant="v" + HOSTILE, tier="T1", actions=3),
        cell(1, substrate="docker", variant=long, tier="T1", actions=3),
        cell(2, substrate="a$b$", tier=HOSTILE + long, mode=HOSTILE, actions=3),
    ]
    trials = [trial(n, cell=n % 3, create=(1 + n) * S, outcome="failed" if n > 18 else "ok") for n in range(21)]
    trials[20][-1][4] = HOSTILE  # the error's class
    path = write(tmp_path / "<b>&.msgpack", trials, *cells, run_id=HOSTILE)
    html = page_of(path)
    found = Reader(html)
    assert len(found.scripts) == 1
    assert not [name for _, attributes in found.elements for name in attributes if name.startswith("on")]
    assert not found.all("b")
    assert not found.all("img")
    assert "{{ 7*7 }}" in found.text
    assert "漢字" in found.text
    assert "\x1b" not in html
    assert "\u202e" not in html
    assert len(html) < 1_500_000


def test_rows_without_a_success_are_said_and_draw_nothing(tmp_path: Path) -> None:
    trials = [trial(n, cell=n % 2, outcome="failed" if n % 2 else "ok") for n in range(12)]
    path = write(tmp_path / "r.msgpack", trials, cell(0), cell(1, substrate="local"))
    assert "no success" in Reader(page_of(path)).text
    single = write(tmp_path / "s.msgpack", [trial(0)])
    assert "nothing to compare it with" in Reader(page_of(single)).text
    only = write(tmp_path / "f.msgpack", [trial(n, outcome="failed") for n in range(4)])
    assert "No trajectory succeeded" in Reader(page_of(only)).text


def test_a_page_is_a_new_file_and_tells_the_names_of_files_and_no_folders(tmp_path: Path) -> None:
    path, out, sheet = recordings(tmp_path)[0], tmp_path / "page.html", price_sheet(tmp_path, docker=1, local=0.5)
    words = ("project", path, "--trajectories", 100, "--workers", 5, "--prices", sheet, "--set=seed=3", "--html", out)
    assert printed(*words) == f"{out}\n"
    text = out.read_text()
    assert "--set seed=3" in Reader(text).text
    assert str(tmp_path) not in text
    assert "exists; choose another name with --html, nothing is overwritten" in printed(*words, code=2)
    assert out.read_text() == text


@pytest.mark.parametrize(
    ("words", "option"),
    [
        ("report x.msgpack --table tax", "--table"),
        ("report x.msgpack --full", "--full"),
        ("project x.msgpack --trajectories 1 --workers 1 --explain", "--explain"),
        ("project x.msgpack --trajectories 1 --workers 1 --format csv", "--format"),
    ],
)
def test_a_page_refuses_options_without_an_effect_on_it(tmp_path: Path, words: str, option: str) -> None:
    assert f"{option} does not go with --html" in printed(*words.split(), "--html", tmp_path / "page.html", code=2)


BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), "")
PROBE = """<!doctype html><body><pre id="out"></pre>
<iframe src="NAME" style="width:WIDTHpx;height:900px;border:0"></iframe><script>
document.querySelector("iframe").addEventListener("load", (event) => {
  const page = event.target.contentDocument, seen = {};
  seen.wide = page.documentElement.scrollWidth;
  const table = page.querySelector("table");
  const column = () => [...table.tBodies[0].rows].map((row) => Number(row.cells[1].dataset.sort));
  const button = table.tHead.rows[0].cells[1].querySelector("button");
  button.click(); seen.up = column();
  button.click(); seen.down = column();
  seen.sort = table.tHead.rows[0].cells[1].getAttribute("aria-sort");
  const style = getComputedStyle(page.body);
  seen.colours = [style.color, style.backgroundColor];
  seen.fill = getComputedStyle(page.querySelector("svg.panel text")).fill;
  document.querySelector("#out").textContent = JSON.stringify(seen);
});
</script>"""
DARK = "--blink-settings=preferredColorScheme=0"
BROWSED = [
    ("page.html", 390, DARK, ["rgb(230, 232, 235)", "rgb(21, 24, 29)"], "rgb(155, 165, 177)"),
    ("site.html", 1280, "--mute-audio", ["rgb(27, 31, 36)", "rgb(255, 255, 255)"], "rgb(87, 96, 106)"),
]
"""File, width, option, the colours of text and of paper, and a colour of text in pictures that is not the text's."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser")
    long = "a-long-variant-of-a-name-that-does-not-fit-a-phone"
    (folder / "page.html").write_text(page_of(*recordings(folder, variant=long)))
    book = site.opened(folder)
    (folder / "site.html").write_text(site.index(book, "site", site.TrainingRun(trajectories=10**6, workers=500), None))
    return folder


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.skipif(not BROWSER, reason="no chromium")
@pytest.mark.parametrize(("name", "width", "option", "colours", "muted"), BROWSED)
def test_a_page_fits_its_screen_by_day_and_by_night_and_is_sorted_by_a_click(
    folder: Path, name: str, width: int, option: str, colours: list[str], muted: str
) -> None:
    probe = folder / f"probe-{name}"
    probe.write_text(PROBE.replace("NAME", name).replace("WIDTH", str(width)))
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr"]
    command += ["--allow-file-access-from-files", f"--user-data-dir={folder / 'profile'}", option]
    command += ["--virtual-time-budget=20000", "--window-size=1400,1000", "--dump-dom", probe.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "CONSOLE" not in done.stderr
    out = re.search(r'<pre id="out">(.+?)</pre>', done.stdout)
    assert out is not None, done.stderr
    found = json.loads(unescape(out[1]))
    assert found["wide"] <= width
    assert found["colours"] == colours
    assert found["fill"] in (muted, colours[0])
    assert (found["up"], found["sort"]) == (sorted(found["up"]), "descending")
    assert found["down"] == found["up"][::-1]

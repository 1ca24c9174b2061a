"""Pages in a real browser, on a phone by night and on a desk by day: their width, console, colours and sorting."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from taxtui.report.measured.rows import rows_of
from taxtui.report.measured.samples import read_samples
from taxtui.report.page import site
from taxtui.report.page.content import page
from taxtui.report.page.material import Material
from tests.support.documents.page_recordings import recordings

pytestmark = pytest.mark.processes

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
COLOURS = {DARK: ["rgb(230, 232, 235)", "rgb(21, 24, 29)"], "--mute-audio": ["rgb(27, 31, 36)", "rgb(255, 255, 255)"]}
"""Option → the colours of text and of paper."""
FILLS = {DARK: {"rgb(155, 165, 177)", "rgb(230, 232, 235)"}, "--mute-audio": {"rgb(87, 96, 106)", "rgb(27, 31, 36)"}}
"""Option → the colours of text in pictures."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser")
    paths = recordings(folder, variant="a-long-variant-of-a-name-that-does-not-fit-a-phone")
    cells, sources = read_samples(paths)
    (folder / "page.html").write_text(page(Material(rows_of(cells), sources, paths, 0)))
    book = site.opened(folder)
    (folder / "site.html").write_text(site.index(book, "site", site.TrainingRun(trajectories=10**6, workers=500), None))
    return folder


@pytest.mark.slow
@pytest.mark.skipif(not BROWSER, reason="no chromium")
@pytest.mark.parametrize(("name", "width", "option"), [("page.html", 390, DARK), ("site.html", 1280, "--mute-audio")])
def test_a_page_fits_its_screen_and_is_sorted_by_a_click(folder: Path, name: str, width: int, option: str) -> None:
    probe = folder / f"probe-{name}"
    probe.write_text(PROBE.replace("NAME", name).replace("WIDTH", str(width)))
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr"]
    command += ["--allow-file-access-from-files", f"--user-data-dir={folder / 'profile'}", option]
    command += ["--virtual-time-budget=20000", "--window-size=1400,1000", "--dump-dom", probe.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "CONSOLE" not in done.stderr
    out = re.search(r'<pre id="out">(.+?)</pre>', done.stdout)
    assert out is not None, done.stderr
    found = json.loads(html.unescape(out[1]))
    assert found["wide"] <= width
    assert found["colours"] == COLOURS[option]
    assert found["fill"] in FILLS[option]
    assert found["up"] == sorted(found["up"])
    assert found["down"] == sorted(found["up"], reverse=True)
    assert found["sort"] == "descending"

"""A page in a real browser: no wider than a phone, a silent console, sorted by a click."""

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
from taxtui.report.page.content import page
from taxtui.report.page.material import Material
from tests.support.documents.page_recordings import recordings

pytestmark = pytest.mark.processes

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), "")
PROBE = """<!doctype html><body><pre id="out"></pre>
<iframe src="page.html" style="width:390px;height:900px;border:0"></iframe><script>
document.querySelector("iframe").addEventListener("load", (event) => {
  const page = event.target.contentDocument, seen = {};
  seen.wide = page.documentElement.scrollWidth;
  const table = page.querySelector("table");
  const column = () => [...table.tBodies[0].rows].map((row) => Number(row.cells[1].dataset.sort));
  const button = table.tHead.rows[0].cells[1].querySelector("button");
  button.click(); seen.up = column();
  button.click(); seen.down = column();
  const style = getComputedStyle(page.body);
  seen.colours = [style.color, style.backgroundColor];
  document.querySelector("#out").textContent = JSON.stringify(seen);
});
</script>"""
DARK = "--blink-settings=preferredColorScheme=0"


@pytest.mark.slow
@pytest.mark.skipif(not BROWSER, reason="no chromium")
def test_a_page_fits_a_phone_at_night_and_is_sorted_by_a_click(tmp_path: Path) -> None:
    paths = recordings(tmp_path, variant="a-long-variant-of-a-name-that-does-not-fit-a-phone")
    cells, sources = read_samples(paths)
    (tmp_path / "page.html").write_text(page(Material(rows_of(cells), sources, paths, 0)))
    probe = tmp_path / "probe.html"
    probe.write_text(PROBE)
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr"]
    command += ["--allow-file-access-from-files", f"--user-data-dir={tmp_path / 'profile'}", DARK]
    command += ["--virtual-time-budget=20000", "--window-size=1400,1000", "--dump-dom", probe.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "CONSOLE" not in done.stderr
    out = re.search(r'<pre id="out">(.+?)</pre>', done.stdout)
    assert out is not None, done.stderr
    found = json.loads(html.unescape(out[1]))
    assert found["wide"] <= 390
    assert found["colours"] == ["rgb(230, 232, 235)", "rgb(21, 24, 29)"]
    assert found["up"] == sorted(found["up"])
    assert found["down"] == sorted(found["up"], reverse=True)

"""The site is built, strictly and without a network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT

pytestmark = pytest.mark.slow
NOWHERE = "http://127.0.0.1:9"  # what asks for anything from outside is refused


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    proxies = {name: NOWHERE for name in ("http_proxy", "https_proxy", "all_proxy")}
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(
        build,
        cwd=ROOT,
        env=os.environ | proxies | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_is_there(site: Path) -> None:
    wanted = {path.relative_to(DOCS).with_suffix(".html") for path in DOCS.rglob("*.md")}
    assert wanted <= {path.relative_to(site) for path in site.rglob("*.html")}


def test_no_page_fetches_anything_from_elsewhere(site: Path) -> None:
    fetched = re.compile(
        r"""<(?:script|img|iframe|link rel="(?:stylesheet|preconnect)")[^>]*(?:src|href)="https?:[^"]*"""
    )
    assert {path.name: found for path in site.rglob("*.html") if (found := fetched.findall(path.read_text()))} == {}

"""The page's source, and what is built from it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ci import IN_CI

REPOSITORY = Path(__file__).resolve().parents[2]
SOURCE = REPOSITORY / "page"
BUILT = REPOSITORY / "memkit" / "serve" / "page"
ACTIVE = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|dangerouslySet|document\.write|\beval\(|new Function|srcdoc|style=\""
)
"""Ways by which text of the memory could become a part of the page, or that its CSP forbids."""


def test_the_built_files_are_those_of_the_source() -> None:
    if shutil.which("npm") is None and not IN_CI:
        pytest.skip("needs npm")
    done = subprocess.run([sys.executable, REPOSITORY / "tools" / "page", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_source_makes_no_html_of_text() -> None:
    files = [path for path in (SOURCE / "src").iterdir() if path.suffix in (".ts", ".tsx", ".html")]
    assert len(files) > 10
    assert [path.name for path in files if ACTIVE.search(path.read_text())] == []


def test_the_built_page_loads_only_its_own_files_and_brings_licenses() -> None:
    text = (BUILT / "index.html").read_text()
    addresses = re.findall(r'(?:src|href)="([^"]*)"', text)
    assert [one for one in addresses if not one.startswith("data:")] == ["page/app.css", "page/app.js"]
    assert "url(" not in (BUILT / "app.css").read_text()
    text = (BUILT / "licenses.txt").read_text()
    wanted = json.loads((SOURCE / "package.json").read_text())["dependencies"]
    for name in ("preact", "markdown-it"):
        assert f"\n{name} {wanted[name]} (" in text
    for part in text.split("-" * 80):
        assert re.search(r"permission|redistribution", part, re.IGNORECASE), part[:200]
    packages = json.loads((SOURCE / "package-lock.json").read_text())["packages"]
    for name, one in packages.items():
        assert "resolved" not in one
        assert not name or one["integrity"].startswith("sha512-")

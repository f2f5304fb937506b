"""The documentation site builds without a warning, needs no other host, and shows every public name."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.browsing import CHROMIUM, NOTICE, started, watched

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site as `make docs` builds it; a link, anchor or reference that leads nowhere fails here."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return folder


def test_nothing_is_fetched_from_elsewhere(site):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        text = page.read_text(encoding="utf-8")
        fetched = re.findall(r'<(?:script|img|iframe|source)[^>]*\bsrc="([^"]+)"', text)
        fetched += re.findall(r'<link rel="(?:stylesheet|icon|preload)"[^>]*href="([^"]+)"', text)
        assert fetched
        assert not [address for address in fetched if re.match(r"(https?:)?//", address)], page.name


def test_every_link_to_a_file_of_the_site_has_one(site):
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for address in re.findall(r'(?:src|href)="([^"#?]+)', text):
            if page.name == "404.html" or re.match(r"[a-z]+:|//", address):
                continue
            assert (page.parent / address).exists(), f"{page.relative_to(site)}: {address}"


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("index.html", "accrual learns from day one"),
        ("CONTRIBUTING.html", "Where would a line live"),
        ("examples/index.html", "class PieceMOSS"),
        ("api/live.html", "observe_many"),
    ],
)
def test_what_lies_outside_docs_and_docstrings_are_there(site, page, words):
    assert words in re.sub(r"<[^>]*>", "", (site / page).read_text(encoding="utf-8"))


def test_the_search_finds_a_method(site):
    assert "close_decision" in (site / "search" / "search_index.js").read_text(encoding="utf-8")


@pytest.mark.parametrize("module", ["accrual", "accrual.client", "accrual.testing"])
def test_every_public_name_is_in_the_reference(site, module):
    pages = [page.read_text(encoding="utf-8") for page in (site / "api").glob("*.html")]
    headings = {text.strip() for page in pages for text in re.findall(r"doc-heading[^>]*>([^<]+)<", page)}
    assert {f"{module}.{name}" for name in importlib.import_module(module).__all__} <= headings


@pytest.mark.skipif(not CHROMIUM, reason=NOTICE)
def test_the_copy_button_takes_what_is_typed_without_prompts_and_answers(site):
    with started() as browser, watched(browser) as seen:
        seen.page.goto((site / "cli.html").as_uri())
        copied = seen.page.evaluate(
            """() => {
              const block = document.querySelector(".highlight code");
              block.setAttribute("data-md-copying", "");  // as the button does
              return [block.innerText.trimEnd(), block.textContent];
            }"""
        )
    assert copied[0] == "accrual simulate examples/two-arms.toml --horizon 20000 --runs 50"
    assert copied[1].startswith("$ accrual simulate")

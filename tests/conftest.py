"""What several test files share."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("shared", deadline=None)  # tests share the machine; a slow example is no failure
settings.load_profile("shared")

os.environ.setdefault("OMP_NUM_THREADS", "1")

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run",
             "--disable-component-update", "--disable-sync"]
DESKTOP = {"width": 1280, "height": 800}
ROOT = Path(__file__).resolve().parents[1]
# With `--dist loadfile` a process takes the next file when it has done one. The pipeline takes longest and comes first. It
# begins by compiling the kernels, so the files after it are long ones that need none.
FIRST = ("test_pipeline.py", "test_notebook.py", "test_site.py", "test_depth.py", "test_walks.py", "test_sequence.py")


def pytest_configure(config: pytest.Config) -> None:
    """Files are run in the order of collection, not by their number of tests."""
    config.option.loadscopereorder = False


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The files of FIRST, then all others as they were found."""
    places = {name: place for place, name in enumerate(FIRST)}
    items.sort(key=lambda item: places.get(item.path.name, len(FIRST)))


@pytest.fixture
def root() -> Path:
    """The checkout under test."""
    return ROOT


def missing(reason: str) -> None:
    """Skip, or fail where a browser is required."""
    (pytest.fail if os.environ.get("FBAM_REQUIRE_BROWSER") == "1" else pytest.skip)(reason)


@pytest.fixture(scope="module")
def browser():
    """A headless Chromium of this machine."""
    executable = next(filter(None, map(shutil.which, BROWSERS)), None)
    if executable is None:
        missing(f"no browser on the PATH (looked for {', '.join(BROWSERS)})")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("the Python package playwright is not installed; pip install -e .[test]")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=executable, args=ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def visit(browser):
    """Opens a page and keeps what it requested and complained about, in `tab.requested` and `tab.complaints`."""
    tab = browser.new_page()
    tab.route(lambda url: url.startswith("http"), lambda route: route.abort())
    tab.on("request", lambda request: tab.requested.append(request.url))
    tab.on("console", lambda message: tab.complaints.append(message.text))
    tab.on("pageerror", lambda error: tab.complaints.append(str(error)))

    def open_page(address: str, viewport=DESKTOP, scheme="light"):
        tab.requested, tab.complaints = [], []
        tab.set_viewport_size(viewport)
        tab.emulate_media(media="screen", color_scheme=scheme)
        tab.goto("about:blank")  # so that scroll position and focus start anew
        tab.goto(address)
        tab.requested = [url for url in tab.requested if url != "about:blank"]
        return tab

    return open_page

"""A real browser for the tests of pages: how to use it is written in `tests/browser/watching.py`.

The browser is Debian's chromium (`make browser`). Each module's tests share one in each worker of the test run: it
ends with the module, because Playwright's event loop stays open as long as it lives, and other tests need their own.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.browser.watching import Watched, watched_page

expect.set_options(timeout=30_000)  # milliseconds: machines that run tests are busy
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
# A browser of tests: root may run it in a container, and it looks up nobody.
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    # A curator's CA is its own; that clients check it is tested elsewhere. Downloads heed only this, no page's setting.
    "--ignore-certificate-errors",
)


@pytest.fixture(scope="module")
def browser(no_process_is_left: None) -> Iterator[Browser]:
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    assert program is not None, f"none of {', '.join(PROGRAMS)} is installed: `make browser` says how to get one"
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=program, args=list(ARGUMENTS))
        yield found
        found.close()


@pytest.fixture
def watch(browser: Browser) -> Iterator[Callable[..., Watched]]:
    """Each call opens one more watched page; settings are those of Playwright's new_context."""
    with ExitStack() as pages:

        def another(**settings: Any) -> Watched:
            return pages.enter_context(watched_page(browser, **settings))

        yield another


@pytest.fixture
def watched(watch: Callable[..., Watched]) -> Watched:
    return watch()

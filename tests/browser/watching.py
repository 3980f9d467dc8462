"""What the browser tests look through: a page that is watched, checked for access, and photographed by `make test-all`.

It does not know any page. Every test of a page uses it like this (fixtures of `tests/browser/conftest.py`):

    def test_the_list_of_runs(watched: Watched) -> None:
        page = watched.open(f"{url}/runs")                # a Playwright page (sync API)
        page.get_by_role("link", name="A run").click()    # whatever the page is for
        watched.look("runs")                              # wide and light, narrow and dark, each checked with axe

After the test the fixture fails it if the console showed an error or a warning, a script threw, or anything was asked
of another origin. An answer that the test provokes shows up in the console too: say so before with
`Watched.expect_error("status of 403")`. A second person at the same time (another party, another sign-in) has cookies
of its own: the fixture tests/browser/conftest.py::watch makes one more watched page with each call.
Screenshots go to build/screenshots.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Page, Request

from tests.support.effort import is_thorough

ROOT = Path(__file__).parents[2]
SCREENSHOTS = ROOT / "build" / "screenshots"
WIDTHS = (1280, 390)
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
_HEIGHT = 800
_AXE = (Path(__file__).parent / "axe-core" / "axe.min.js").read_text(encoding="utf-8")
_RUN_AXE = """async () => {
  const found = await axe.run(document, {resultTypes: ["violations"]});
  return found.violations.filter(one => ["serious", "critical"].includes(one.impact)).map(
    one => `${one.impact}: ${one.help} (${one.id}): ${one.nodes.map(node => node.html.slice(0, 200)).join(" | ")}`);
}"""
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass
class Watched:
    page: Page
    complaints: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    def open(self, url: str) -> Page:
        self.page.goto(url)
        return self.page

    def expect_error(self, part: str) -> None:
        """Something that the test provokes: what the console says about it has this part."""
        self.expected.append(part)

    def look(self, name: str) -> None:
        """Look at the page as it is, wide and light, narrow and dark: nothing is cut off and all can be used.

        A thorough run looks at all four, and photographs them.
        """
        looks = product(WIDTHS, SCHEMES) if is_thorough() else zip(WIDTHS, SCHEMES, strict=True)
        try:
            for width, scheme in looks:
                self.page.set_viewport_size({"width": width, "height": _HEIGHT})
                self.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
                if is_thorough():
                    self.photograph(f"{name}-{width}-{scheme}")
                self.check_access(f"{name} at {width} pixels, {scheme}")
                self.check_width(name)
        finally:
            self.page.set_viewport_size({"width": WIDTHS[0], "height": _HEIGHT})
            self.page.emulate_media(color_scheme="light", reduced_motion="reduce")

    def check_access(self, what: str) -> None:
        """No finding of axe-core that is serious or critical."""
        if not self.page.evaluate("() => 'axe' in window"):
            self.page.evaluate(_AXE)
        found = self.page.evaluate(_RUN_AXE)
        assert not found, "\n".join([f"{what} cannot be used by everybody:", *found])

    def check_width(self, what: str) -> None:
        """Nobody has to scroll sideways: what is wide scrolls within itself."""
        widths: Any = self.page.evaluate("() => [document.documentElement.scrollWidth, window.innerWidth]")
        assert widths[0] <= widths[1], f"{what} is {widths[0]} pixels wide where the window has {widths[1]}"

    def check(self) -> None:
        """Fails for everything that went wrong and was not expected."""
        wrong = [one for one in self.complaints if not any(part in one for part in self.expected)]
        assert not wrong, "\n".join(["the browser complains:", *wrong])

    def photograph(self, name: str) -> None:
        """As it is now, the whole page."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True, animations="disabled")

    # What the browser tells

    def listen(self) -> None:
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.complaints.append(f"a script threw: {error}"))
        self.page.on("request", self._notice)

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"console {message.type}: {message.text} ({message.location.get('url', '')})")

    def _notice(self, request: Request) -> None:
        asked = urlsplit(request.url)
        if asked.scheme in ("data", "blob", "about"):
            return
        if request.is_navigation_request():
            if asked.scheme != "file" and asked.hostname not in _LOOPBACK:
                self.complaints.append(f"the page led to {request.url}")
        elif (asked.scheme, asked.netloc) != urlsplit(request.frame.url)[:2]:
            self.complaints.append(f"{request.frame.url} asked another origin: {request.url}")


@contextmanager
def watched_page(browser: Browser, **settings: Any) -> Iterator[Watched]:
    """A page with cookies of its own, in a wide and light window."""
    context = browser.new_context(
        viewport={"width": WIDTHS[0], "height": _HEIGHT},
        color_scheme="light",
        reduced_motion="reduce",
        locale="en-GB",
        timezone_id="UTC",
        accept_downloads=True,
        **settings,
    )
    try:
        found = Watched(context.new_page())
        found.listen()
        yield found
        found.check()
    finally:
        context.close()

"""The browser tests see what goes wrong: errors, foreign requests, wide pages, pages that not everybody can use."""

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from tests.browser.watching import SCREENSHOTS, WIDTHS, Watched

_HEAD = '<head><title>t</title><link rel="icon" href="data:,"></head>'
_START = f'<!doctype html><html lang="en">{_HEAD}<body><main><h1>t</h1>'
_BODIES = {
    "/good": "<p>Nothing is wrong.</p>",
    "/throws": "<script>null.x</script>",
    "/complains": "<script>console.error('it broke')</script>",
    "/foreign": '<img alt="x" src="http://127.0.0.1:9/x.png">',
    "/absent": '<img alt="x" src="/nothing.png">',
    "/wide": '<p style="width:2000px">x</p>',
    "/unlabelled": "<input type=text>",
}


class _Pages(BaseHTTPRequestHandler):
    policies: ClassVar[dict[str, str]] = {"/good": "default-src 'none'; style-src 'self'; img-src data:"}

    def do_GET(self) -> None:
        body = _BODIES.get(self.path)
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        if self.path in self.policies:
            self.send_header("Content-Security-Policy", self.policies[self.path])
        self.end_headers()
        self.wfile.write((_START + (body or "") + "</main></body></html>").encode())

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the tests say what matters."""


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Pages)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_good_page_is_photographed_in_four_ways(site: str, watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.browser.watching.is_thorough", lambda: True)
    watched.open(f"{site}/good")
    watched.look("watching-good")
    for width in WIDTHS:
        for scheme in ("light", "dark"):
            assert (SCREENSHOTS / f"watching-good-{width}-{scheme}.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("path", "said"),
    [("/throws", "threw"), ("/complains", "it broke"), ("/foreign", "another origin"), ("/absent", "status of 404")],
)
def test_what_goes_wrong_is_noticed(site: str, watch: Callable[[], Watched], path: str, said: str) -> None:
    found = watch()
    found.open(site + path)
    found.page.wait_for_load_state("networkidle")
    with pytest.raises(AssertionError, match=said):
        found.check()
    found.complaints.clear()


def test_an_error_that_is_expected_is_forgiven_and_no_other(site: str, watch: Callable[[], Watched]) -> None:
    found = watch()
    found.expect_error("status of 404")
    found.open(f"{site}/absent")
    found.page.wait_for_load_state("networkidle")
    found.check()
    found.open(f"{site}/complains")
    with pytest.raises(AssertionError, match="it broke"):
        found.check()
    found.complaints.clear()


@pytest.mark.parametrize(("path", "said"), [("/wide", "pixels wide"), ("/unlabelled", "cannot be used")])
def test_pages_that_not_everybody_can_use_are_refused(site: str, watched: Watched, path: str, said: str) -> None:
    watched.open(site + path)
    with pytest.raises(AssertionError, match=said):
        watched.look(f"watching{path.replace('/', '-')}")

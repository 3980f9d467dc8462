"""The operator's pages in a browser behind a real nginx, with the very configuration that docs/operating.md gives."""

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, Route, expect

from curator.home.tls import client_context
from curator.http.dependencies import COOKIE
from tests.browser.watching import Watched
from tests.end_to_end.cluster import PATIENCE, Cluster, cluster, wait
from tests.support.documents import document

PARTIES = ("Nord", "Süd Klinik")
_PASS_HOST = "proxy_set_header Host $http_host;"
_TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


def documented() -> str:
    """The server block of docs/operating.md."""
    (found,) = re.findall(r"```\n(server \{\n.*?\n\})\n```", document("docs/operating.md"), re.DOTALL)
    return found


@contextmanager
def nginx(folder: Path, home: Cluster, server: str) -> Iterator[str]:
    """The address of an nginx with this server block in front of the curator; ended by its number."""
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    assert program is not None, "nginx is not installed: `make browser` says how to get it"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for written, real in (
        ("listen 8460 ssl", f"listen 127.0.0.1:{port} ssl"),
        ("http://127.0.0.1:8461", home.url),
        ("/curator-home", str(home.folder / "curator")),
    ):
        assert written in server
        server = server.replace(written, real)
    folder.mkdir()
    paths = "\n".join(f"{name}_temp_path {folder / name};" for name in _TEMPORARY)
    user = "user root;" if os.geteuid() == 0 else ""
    configuration, log = folder / "nginx.conf", folder / "nginx.log"
    configuration.write_text(
        f"daemon off; {user} pid {folder / 'pid'}; error_log {log};\nevents {{}}\n"
        f"http {{ access_log off;\n{paths}\n{server}\n}}\n"
    )
    with log.open("wb") as output:
        command = [program, "-e", str(log), "-p", str(folder), "-c", str(configuration)]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        wait(lambda: process.poll() is not None or _listens(port), "nginx")
        assert process.poll() is None, log.read_text()
        yield f"https://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(15)


def _listens(port: int) -> bool:
    with socket.socket() as line:
        return line.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def home(no_process_is_left: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    with cluster(folder / "c", env={"SUBN_CURATOR_BEHIND_PROXY": "127.0.0.1"}) as found:
        yield found


def test_pages_and_parties_behind_the_documented_nginx(home: Cluster, watched: Watched, tmp_path: Path) -> None:
    with nginx(tmp_path / "nginx", home, documented()) as url:
        page = watched.open(f"{url}/parties")
        page.get_by_label("Operator's key").fill(home.key)
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Parties", exact=True)).to_be_visible()
        (cookie,) = [one for one in page.context.cookies() if one["name"] == COOKIE]
        assert (cookie["secure"], cookie["httpOnly"], cookie["sameSite"]) == (True, True, "Strict")

        home.add(*PARTIES)
        home.acquaint(*PARTIES)
        for name in PARTIES:
            page.goto(f"{url}/parties")
            page.get_by_label("Name of the party").fill(name)
            page.get_by_role("button", name="Make a one-time code").click()
            code = page.locator("#code").text_content()
            expect(page.get_by_text("subn-party enrol --curator")).to_contain_text(f"--curator {url} --code {code}")
            home.sites[name].cli("enrol", "--curator", url, "--code", code, "--name", name)
            home.sites[name].cli("offer")
        home.serve(*PARTIES)

        page.goto(f"{url}/plan?schema={home.schema.hash}")
        with page.expect_response(lambda answer: "/plan/forecast" in answer.url and "noise=distributed" in answer.url):
            page.get_by_label("Noise", exact=True).select_option("distributed")
        expect(page.get_by_text("noise mode distributed")).to_be_visible()  # other settings have other advice
        tick_while_a_forecast_is_on_its_way(page)  # the plan's rows are few
        page.get_by_role("button", name="Start this run").click()
        heading = page.get_by_role("heading", name="Result")
        expect(heading).to_be_visible(timeout=PATIENCE * 1000)  # the page moves by itself, through the proxy
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        for name in PARTIES:
            home.sites[name].running.stop()


def test_a_form_of_another_site_is_refused_behind_nginx_too(home: Cluster, tmp_path: Path) -> None:
    with nginx(tmp_path / "nginx", home, documented()) as url, _client(home, url) as line:
        for origin in ("https://evil.example", url.replace("https", "http"), home.url, "null"):
            answer = line.post("/sign-in", data={"key": home.key}, headers={"Origin": origin})
            assert (answer.status_code, COOKIE in answer.cookies) == (403, False), origin
        assert line.post("/sign-in", data={"key": home.key}, headers={"Origin": url}).status_code == 303


def test_a_proxy_that_hides_the_host_is_told_what_to_pass_on(home: Cluster, tmp_path: Path) -> None:
    without = documented().replace(_PASS_HOST, "")
    assert without != documented()
    with nginx(tmp_path / "nginx", home, without) as url, _client(home, url) as line:
        answer = line.post("/sign-in", data={"key": home.key}, headers={"Origin": url})
        assert answer.status_code == 403
        assert "a proxy in front has to pass on the Host header as the browser sends it" in answer.text


def tick_while_a_forecast_is_on_its_way(page: Page) -> None:
    """The forecast brings the same advice, and the box stays as it was left."""
    held, anyway = list[Route](), page.get_by_label("Start this run although the advice above says stop")
    page.route("**/plan/forecast?*", lambda route: route.continue_() if held else held.append(route))
    with page.expect_request("**/plan/forecast?*"):
        page.get_by_label("Rows of the table").fill("90")
    anyway.check()
    with page.expect_response(lambda answer: "rows=90" in answer.url):
        held[0].continue_()
    page.wait_for_load_state("networkidle")
    expect(anyway).to_be_checked()


def _client(home: Cluster, url: str) -> httpx.Client:
    return httpx.Client(base_url=url, verify=client_context(home.ca_file.read_text()), timeout=PATIENCE)

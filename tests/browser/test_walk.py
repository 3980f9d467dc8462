"""A new user's walk, as the README tells it: from one command to a request accepted, a run watched, a report opened."""

import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

import psutil
import pytest

from tests.browser.watching import Watched
from tests.support.documents import ROOT, document, marked

PATIENCE = 300  # seconds that the README promises, for everything
LABELS = {
    "first": r"data owner's pages .*: (http\S+)",
    "second": r"operator's pages: (http\S+)",
    "key": r"operator's key: (\S+)",
}


def walk() -> str:
    return marked(document("README.md"), "walk")


def processes_of(folder: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if any(str(folder) in part for part in process.info["cmdline"] or ()) and process.pid != os.getpid():
            found.append(process)
    return found


@pytest.fixture
def demonstration(tmp_path: Path) -> Iterator[tuple["subprocess.Popen[str]", Path]]:
    """The README's command; two hospitals are enough here. Whatever it leaves behind after a failure is ended."""
    command = re.search(r"`(make demo [^`]*)`", walk())
    assert command is not None
    folder = tmp_path / "demo"
    words = [*shlex.split(command[1]), "PARTIES=2", f"ARGS=--out {folder}"]
    with subprocess.Popen(
        words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as process:
        try:
            yield process, folder
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
            for left in processes_of(folder):
                with suppress(psutil.NoSuchProcess):  # it ends by itself at this moment
                    left.terminate()


def told(output: IO[str]) -> dict[str, str]:
    """What the command prints for its reader."""
    found: dict[str, str] = {}
    text = ""
    while len(found) < len(LABELS):
        line = output.readline()
        assert line, text
        text += line
        found |= {name: match[1] for name, pattern in LABELS.items() if (match := re.search(pattern, line))}
    return found


def test_the_walk_of_the_readme(
    demonstration: tuple["subprocess.Popen[str]", Path], watch: Callable[..., Watched]
) -> None:
    started = time.monotonic()
    process, folder = demonstration
    assert process.stdout is not None
    buttons = re.findall(r"\*\*([^*]+)\*\*", walk())
    accept = "Accept: spend ε 1 of the 1 left (cannot be undone)"
    assert buttons == ["Read and decide", accept, "Sign in", "Open the report"]
    addresses = told(process.stdout)

    owner = watch()
    page = owner.open(addresses["first"])
    page.get_by_role("link", name=buttons[0]).click()
    assert "asks for up to" in page.get_by_label("The request").inner_text()
    page.get_by_role("button", name=buttons[1]).click()
    page.locator("#steps").get_by_text("answered", exact=True).first.wait_for(timeout=120_000)

    # The curator's certificate is its own: a reader is warned, and goes on.
    operator = watch()
    desk = operator.open(addresses["second"])
    desk.get_by_label("Operator's key").fill(addresses["key"])
    desk.get_by_role("button", name=buttons[2]).click()
    desk.locator("tbody th a").click()
    desk.get_by_text("Parties and stages").first.wait_for()
    report = desk.get_by_role("link", name=buttons[3])
    report.wait_for(timeout=PATIENCE * 1000)
    report.click()
    desk.get_by_role("heading", level=1).wait_for()
    assert "epsilon" in desk.locator("body").inner_text().lower()

    page.reload()
    page.get_by_text("finished").first.wait_for(timeout=30_000)
    owner.look("walk-owner")
    taken = time.monotonic() - started
    assert taken < PATIENCE, f"the walk took {taken:.0f} s"

    said = process.stdout.read()
    stop = re.search(r"stop everything: (kill [\d ]+)", said)
    assert stop is not None, said
    assert process.wait() == 0
    subprocess.run(shlex.split(stop[1]), check=True)
    deadline = time.monotonic() + 30
    while processes_of(folder) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert processes_of(folder) == []

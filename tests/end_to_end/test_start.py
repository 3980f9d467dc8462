"""`subn-party start`, the one command of a container: what keeps it from serving is told, and may be put right."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.cluster import Cluster, Program, cluster, command, wait
from tests.support.programs import start_program


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("start") / "c") as found:
        yield found


def started(home: Cluster, name: str, code: str) -> Program:
    """A party's container as far as it is one process: everything comes from the environment."""
    site = home.sites[name]
    (site.home / "code").write_text(code)
    said = {"CURATOR": home.url, "NAME": name, "CODE_FILE": str(site.home / "code"), "HOME": str(site.home)}
    environment = {f"SUBN_PARTY_{word}": value for word, value in said.items()}
    log = home.folder / f"{name}.log"
    with log.open("wb") as output:
        process = start_program("subn-party", "start", output=output, env=environment)
    program = Program(name, process, log)
    home.programs.append(program)
    return program


def ready(home: Cluster, name: str, seconds: int) -> tuple[int, str]:
    done = command("subn-party", "ready", "--wait", seconds, "--home", home.sites[name].home)
    return done.returncode, done.stdout + done.stderr


def test_a_wrong_code_is_told_at_once_and_a_right_one_is_taken_without_a_restart(clinic: Cluster) -> None:
    """The documented loop went on for ever, saying that nothing answers."""
    clinic.add("north")
    right = clinic.code("north")
    party = started(clinic, "north", right[:4] + ("a" if right[4] != "a" else "b") + right[5:])
    began = time.monotonic()
    code, said = ready(clinic, "north", 60)
    assert (code, time.monotonic() - began < 30) == (3, True), said
    assert said.startswith("not ready: the curator refuses: ")
    (found,) = [one for one in clinic.sites["north"].cli("doctor", code=1)["findings"] if one["what"] == "connection"]
    assert found["found"].startswith("this party is not enrolled, because the curator refuses: ")
    (clinic.sites["north"].home / "code").write_text(right)
    wait(lambda: party.said("listening"), "the party to serve", party)
    assert ready(clinic, "north", 60) == (0, "ready\n")
    assert not (clinic.sites["north"].home / "not-started").exists()
    assert party.stop() == 0


@pytest.mark.parametrize("word", ["", "no code at all"])
def test_no_code_is_a_wrong_setting(clinic: Cluster, word: str) -> None:
    name = f"without {word}"
    clinic.add(name)
    party = started(clinic, name, word)
    code, said = ready(clinic, name, 60)
    assert code == 2, said
    assert "code" in said
    assert party.stop() == 0  # between two attempts too


def test_a_curator_that_is_away_is_waited_for_as_long_as_was_said(clinic: Cluster) -> None:
    clinic.add("far")
    right, there = clinic.code("far"), clinic.url
    clinic.url = "https://127.0.0.1:1"
    party = started(clinic, "far", right)
    clinic.url = there
    wait(lambda: party.said("cannot start"), "the first attempt", party)
    code, said = ready(clinic, "far", 6)
    assert code == 1, said
    assert "https://127.0.0.1:1 does not answer" in said
    assert party.stop() == 0


def test_a_curator_is_waited_for_too(clinic: Cluster, tmp_path: Path) -> None:
    port = clinic.url.rpartition(":")[2]
    there = ("--home", clinic.folder / "curator", "--json", "--wait", 2)
    done = command("subn-curator", "ready", *there, "--port", port)
    assert (done.returncode, json.loads(done.stdout)) == (0, {"status": "ready"})
    began = time.monotonic()
    assert command("subn-curator", "ready", *there, "--port", 1).returncode == 1
    assert time.monotonic() - began >= 2

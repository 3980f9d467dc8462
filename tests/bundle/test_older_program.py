"""The program of 10bb490, as it was, begins runs; this program goes on with its homes: nothing is lost or spent twice.

`make bundle-test` installs the older program from the repository's history, with the packages that it was pinned to.
"""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from signal import SIGKILL
from typing import IO, Any

import pytest

from protocol.messages.run_states import ENDS
from tests.end_to_end.cluster import Cluster, Site, cluster, wait
from tests.support.programs import ROOT, start_program

PROGRAMS = ROOT / "build" / "older" / ".venv" / "bin"
PARTIES = ("north", "south")


def begin_older(
    program: str, *arguments: object, output: IO[bytes], env: Mapping[str, str] | None = None
) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [str(PROGRAMS / program), *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        env={**os.environ, **(env or {})},
        start_new_session=True,
    )


def older(program: str, *arguments: object) -> "subprocess.CompletedProcess[str]":
    words = [str(PROGRAMS / program), *map(str, arguments)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def older_cli(site: Site, *arguments: object) -> Any:
    words = [arguments[0], "--home", site.home, "--json", *arguments[1:]]
    return json.loads(older("subn-party", *words).stdout)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """A curator and parties of the older program, at work; whatever is started later is this program."""
    with monkeypatch.context() as patch:
        patch.setattr(Site, "cli", older_cli)
        patch.setattr(Cluster, "curator_cli", lambda it, *args: older("subn-curator", *args, "--home", it.home_folder))
        with cluster(tmp_path / "c", begin_process=begin_older) as found:
            found.add(*PARTIES, rules={"updates": ["accumulate", "joint", "guided"]})  # as its template had them
            found.acquaint(*PARTIES)
            found.enrol(*PARTIES)
            found.serve(*PARTIES)
            patch.undo()
            yield found


def begun(home: Cluster, **wishes: Any) -> str:
    """A run at the older curator, whose interface knows no word for going against advice."""
    usual = {"schema": home.schema.hash, "parties": list(PARTIES), "epsilon": "2", "noise": "distributed"}
    answer = home.http.post("/v1/runs", json=usual | wishes, headers={"Idempotency-Key": os.urandom(16).hex()})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["run"])


def begun_and_broken(home: Cluster, method: str) -> str:
    """A run in the middle of which one party is killed. Independent runs end with their first step after joining."""
    south = home.sites["south"].running
    if method == "independent":
        south.stop(SIGKILL)
        return begun(home, method=method)
    run = begun(home, method=method)
    wait(lambda: home.run(run)["state"] == "running", "the run to be under way", home.curator)
    south.stop(SIGKILL)
    return run


def upgraded(home: Cluster) -> None:
    """Everybody stops, and starts with this program."""
    for program in home.programs:
        program.stop()
    home.begin_process = start_program
    home.start_curator()
    home.serve(*PARTIES)


def until_settled(home: Cluster, run: str) -> dict[str, Any]:
    """The run, once it is over or held."""

    def settled() -> dict[str, Any] | None:
        found = home.run(run)
        return found if found["state"] in ENDS or str(found["reason"]).startswith("held") else None

    found: dict[str, Any] = wait(settled, f"{run} to go on, to end or to be held", patience=240)
    return found


@pytest.mark.parametrize("method", ["dp-subn", "dp-ccbn", "independent"])
def test_a_run_that_the_older_program_began_goes_on_or_is_held_with_the_way_back(home: Cluster, method: str) -> None:
    before = begun(home, method=method)
    home.until(before, "finished", patience=120)
    run = begun_and_broken(home, method)
    assert home.run(run)["state"] not in ENDS
    spent = {name: older_cli(home.sites[name], "ledger") for name in PARTIES}
    upgraded(home)
    found = until_settled(home, run)
    print("\n", method, json.dumps({name: found[name] for name in ("state", "step", "reason", "culprit")}))
    assert found["state"] == "finished" or found["reason"].startswith("held, and nothing of it has changed"), found
    if found["state"] != "finished":
        assert "go back to the version that began it" in found["reason"]
        home.subn("cancel", run, "--reason", "it cannot go on")
        assert home.run(run)["state"] == "cancelled"
    assert home.run(before)["state"] == "finished"
    assert home.get(before, "table.csv")
    for name, site in home.sites.items():

        def has_heard(site: Site = site) -> bool:
            return {one["run"]: one["state"] for one in site.cli("requests", "--all")}[before] == "ended"

        wait(has_heard, f"{name} to hear of the end", site.running)
        entries = site.cli("ledger")["entries"]
        assert entries[: len(spent[name]["entries"])] == spent[name]["entries"]
        assert site.cli("audit", "verify")["problems"] == []
    for site in home.sites.values():  # docs/operating.md: rules that the older program did not know are named anew
        text = (site.home / "party.toml").read_text()
        (site.home / "party.toml").write_text(text.replace('"guided"', '"turns"'))
        site.running.stop()
    home.serve(*PARTIES)
    home.finished(*PARTIES, method=method)

"""Every key is changed or taken away while a run is under way: what goes on, what stops, and what people are told."""

import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from protocol.run.manifest import verify_manifest
from tests.end_to_end.cluster import Cluster, cluster, wait

PARTIES = ("north", "south")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Cluster]:
    with cluster(tmp_path / "c") as found:
        found.add(*PARTIES)
        found.acquaint(*PARTIES)
        found.enrol(*PARTIES)
        found.serve(*PARTIES)
        yield found


def half_joined(home: Cluster) -> str:
    """A run that one party has joined and the other is kept from joining."""
    home.sites["south"].running.send(signal.SIGSTOP)
    run = home.begin(*PARTIES)
    wait(lambda: home.run(run)["progress"][0]["answered"] == ["north"], "north to join", home.curator)
    return run


def go_on(home: Cluster) -> None:
    home.sites["south"].running.send(signal.SIGCONT)


def test_the_curators_key_changes_in_mid_run(home: Cluster) -> None:
    old, run = home.public, half_joined(home)
    home.curator.stop()
    said = home.curator_cli("rotate").stdout
    pin = said.split("subn-party recognise ")[1].split()[0]
    home.start_curator()
    go_on(home)
    for name in PARTIES:
        wait(
            lambda name=name: "subn-party recognise" in home.sites[name].running.log.read_text(),  # type: ignore[misc]
            f"{name} to refuse the unknown key",
            home.sites[name].running,
        )
    # Nobody answers whom it does not know. (South may have been asked to join by the old key before it was stopped.)
    assert not any(step["answered"] for step in home.run(run)["progress"][1:])
    for name in PARTIES:
        site = home.sites[name]
        assert site.shell("recognise", "0" * 32).returncode == 3
        site.cli("recognise", pin)
        site.running.stop()
    home.serve(*PARTIES)
    home.until(run, "finished")
    manifest = verify_manifest(home.get(run, "manifest.json"), {})
    assert manifest.curator_key.hex() != old
    for name in PARTIES:
        assert home.sites[name].cli("doctor")["bad"] == 0
        assert home.sites[name].cli("audit", "verify")["problems"] == []


def test_a_partys_keys_change_between_runs_only(home: Cluster) -> None:
    """The plan that is under way holds the present keys: a change waits for its end, and says for which run."""
    run = half_joined(home)
    site = home.sites["north"]
    site.running.stop()
    refused = site.shell("rotate")
    assert refused.returncode == 2
    assert run in refused.stderr
    assert "wait for its end" in refused.stderr
    home.serve("north")
    go_on(home)
    home.until(run, "finished")


def test_an_operators_key_is_taken_away_in_mid_run(home: Cluster) -> None:
    """The run is not his: it goes on, and another operator takes its result."""
    run = half_joined(home)
    second = home.curator_cli("operator-key", "add", "second").stdout.strip()
    home.curator_cli("operator-key", "revoke", "first")
    assert home.http.get(f"/v1/runs/{run}").status_code == 401
    assert home.subn("parties", "list").returncode == 2
    home.http.headers["Authorization"] = f"Bearer {second}"
    go_on(home)
    home.until(run, "finished")
    assert isinstance(home.http, httpx.Client)


def test_a_party_is_revoked_in_mid_run(home: Cluster) -> None:
    run = half_joined(home)
    assert home.subn("parties", "revoke", "south").returncode == 0
    ended = home.until(run, "failed")
    assert ended["culprit"] == "south"
    go_on(home)
    told = wait(
        lambda: "was revoked by the operator" in home.sites["south"].running.log.read_text(),
        "south to be told",
        home.sites["south"].running,
    )
    assert told
    wait(
        lambda: home.sites["north"].account()["reserved"] == "0", "north to be free again", home.sites["north"].running
    )
    assert home.sites["south"].cli("doctor", code=1)["bad"] >= 1

"""Two live copies of one party's home, as after a failover or on a cloned machine: at most one of them ever answers.

Both have the same keys, so that both would make the same masks, with other noise.
"""

import shutil
import signal
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from curator.store import run_records as records
from curator.store.store import Store
from party.books.ledger import Ledger
from tests.end_to_end.cluster import Cluster, Program, Site, cluster, wait

PARTIES = ("Nord", "Süd")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Cluster]:
    with cluster(tmp_path / "cluster") as found:
        found.add(*PARTIES)
        found.enrol(*PARTIES)
        found.acquaint(*PARTIES)
        found.serve(*PARTIES)
        yield found


def copied(home: Cluster, name: str) -> Site:
    """A copy of the home's files, as a snapshot of the disk has them."""
    site = home.sites[name]
    folder = site.home.with_name(f"{name}-copy")
    shutil.copytree(site.home, folder)
    return Site(f"{name}-copy", folder, site.codes)


def start(home: Cluster, site: Site) -> Program:
    site.program = home.start(site.name, "subn-party", "serve", "--home", site.home)
    site.running.wait_for("listening")
    return site.running


def gives_up(program: Program) -> str:
    """It stops by itself, with the code of a refusal; what it says then."""
    wait(lambda: program.process.poll() is not None, f"{program.name} to stop")
    assert program.process.returncode == 3, program.tail()
    said = program.said("stopped")
    assert said is not None
    return str(said["reason"])


def check_answered_once(home: Cluster, run: str, name: str) -> None:
    """Of no step did other bytes arrive at the curator than those that it has taken, which one of the copies holds."""
    store = Store.open(f"sqlite:///{home.folder / 'curator' / 'curator.db'}")
    try:
        with store.reading() as db:
            taken = {reply.step: reply.digest for reply in records.replies_of_run(db, run) if reply.party == name}
    finally:
        store.close()
    came = [line for line in home.curator.lines() if line.get("party") == name and "/outbox/" in line.get("path", "")]
    assert {line["step"] for line in came if line.get("run") == run} == set(taken)
    assert {line["status"] for line in came} == {204}
    held = set()
    for folder in (home.sites[name].home, home.sites[name].home.with_name(f"{name}-copy")):
        ledger = Ledger.open(folder / "ledger.db")
        held |= {(entry.step, entry.reply_digest) for entry in ledger.entries(run=run)}
        ledger.close()
    assert held >= set(taken.items())


@pytest.mark.exhaustive
def test_of_two_live_copies_one_answers_and_the_other_stops_until_its_owner_knows(home: Cluster) -> None:
    original, copy = home.sites["Nord"], copied(home, "Nord")
    start(home, copy)
    run = home.finished(*PARTIES)
    check_answered_once(home, run, "Nord")
    loser, winner = stopped_and_going(original, copy)
    assert "another copy of this home answers" in gives_up(loser.running)
    wait(lambda: winner.account()["reserved"] == "0", "the party to settle", winner.running)
    assert winner.account()["spent"] == "2"

    assert loser.shell("serve").returncode == 3  # a supervisor starts it again, while the other one serves
    winner.running.stop()
    assert {one["run"] for one in loser.cli("ledger", "acknowledge")} == {run}
    assert Fraction(loser.account()["spent"]) >= 2
    start(home, loser)
    home.finished(*PARTIES)
    assert winner.shell("serve").returncode == 3  # now the other one is behind, and learns it at its start


def stopped_and_going(*sites: Site) -> tuple[Site, Site]:
    """The one of two copies that has stopped, and the other one."""

    def gone() -> list[Site]:
        return [site for site in sites if site.running.process.poll() is not None]

    (loser,) = wait(gone, "a copy to stop")
    (winner,) = (site for site in sites if site is not loser)
    return loser, winner


def test_a_machine_that_slept_while_its_copy_went_on_sends_nothing_when_it_wakes(home: Cluster) -> None:
    """In the middle of a run, with the secrets of the run in both homes, and with a task that waits in its socket."""
    original = home.sites["Nord"]
    home.sites["Süd"].running.send(signal.SIGSTOP)
    run = home.begin(*PARTIES, update="joint", rounds=3)
    original.running.wait_for("delivered", run=run)  # Stopped while it sends, it would be told of a timeout
    original.running.send(signal.SIGSTOP)
    copy = copied(home, "Nord")
    start(home, copy)
    home.sites["Süd"].running.send(signal.SIGCONT)
    home.until(run, "finished")
    original.running.send(signal.SIGCONT)
    assert "another copy of this home answers" in gives_up(original.running)
    check_answered_once(home, run, "Nord")
    original.cli("ledger", "acknowledge")
    assert Fraction(original.account()["spent"]) >= 2
    assert copy.account()["spent"] == "2"

"""A party that is late, vanishes, repeats itself or lies; a ledger or a curator restored from an older copy."""

import asyncio
import shutil
import sqlite3
import subprocess
import sysconfig
from fractions import Fraction
from hashlib import sha256
from pathlib import Path

import pytest

from crypto.signing import sign
from party.books import audit
from party.books.ledger import Ledger
from party.curator_link.client import Curator
from party.errors import Declined
from party.home import keys, settings
from protocol.messages.signatures import RECEIPT, receipt_text
from tests.faults.processes import CURATOR
from tests.faults.trap import Trap
from tests.support.effort import mostly_exhaustive


def account(cluster, name):
    ledger = Ledger.open(cluster.homes[name].ledger)
    try:
        return ledger.spent("patients"), ledger.reserved("patients")
    finally:
        ledger.close()


def all_settled(cluster, run, names):
    for name in names:
        cluster.until(lambda name=name: cluster.has_settled(name, run))


# Late, gone


@pytest.mark.exhaustive
def test_a_party_that_is_late_holds_the_run_visibly(cluster):
    cluster.kill("party-2")
    run = cluster.begin()
    cluster.until(lambda: [one["party"] for one in cluster.state(run)["waiting_for"]] == ["party-2"])
    waiting = cluster.state(run)
    assert (waiting["state"], waiting["step"]) == ("joining", "joining")
    assert waiting["deadline"] > waiting["updated"]
    assert waiting["waiting_for"][0]["last_seen"] < waiting["updated"]
    cluster.start("party-2")
    cluster.finishes(run)


@pytest.mark.parametrize(("step", "unheard"), mostly_exhaustive([("joining", "0"), ("initial/2", "3/20")], {1}))
def test_a_party_that_vanishes_is_named_and_frees_the_others(cluster, step, unheard):
    """What it answered and nobody heard stays spent: the bytes may have been seen on the way."""
    before = {name: account(cluster, name) for name in cluster.names}
    trap = Trap(cluster, "party-2", step, "lost before", of="party-2")
    run = cluster.begin(step_seconds=6, join_seconds=6)
    assert trap.sprung.wait(60)
    ended = cluster.end(run)
    assert (ended["state"], ended["culprit"]) == ("timed_out", "party-2")
    assert step in ended["reason"]
    all_settled(cluster, run, ["party-1"])
    cluster.proxy.clear()
    cluster.start("party-2")
    all_settled(cluster, run, ["party-2"])
    for name in cluster.names:
        paid = sum((Fraction(reply.charge) for reply in cluster.replies(run) if reply.party == name), Fraction(0))
        lost = Fraction(unheard) if name == "party-2" else 0
        assert account(cluster, name) == (before[name][0] + paid + lost, 0)
        assert audit.verify(cluster.homes[name].audit) == []


# Lies


class Liar:
    """party-2's keys in other hands."""

    def __init__(self, cluster):
        home = cluster.homes["party-2"]
        self.identity = keys.load(home.keys).identity
        self.key = bytes.fromhex(settings.load(home).curator.key)
        self.url = cluster.proxy.target

    def says(self, conversation):
        async def talk():
            async with Curator(self.url, "party-2", self.identity.signing, self.key, tries=3) as line:
                return await conversation(line)

        return asyncio.run(talk())

    def receipt(self, plan, step, charge, body):
        return sign(self.identity.signing, RECEIPT, receipt_text(plan, step, Fraction(charge), body))


def test_wrong_bytes_end_the_run_and_name_the_liar(cluster):
    trap = Trap(cluster, "party-2", "joining", "after, but heard", of="party-2")
    run = cluster.begin()
    assert trap.sprung.wait(60)
    cluster.until(lambda: cluster.state(run)["step"] == "correlations")
    state, liar, body = cluster.state(run), Liar(cluster), b"not what was asked"
    receipt = liar.receipt(state["plan_hash"], "correlations", "1/20", body)
    liar.says(lambda line: line.deliver(run, "correlations", body, receipt))
    ended = cluster.end(run)
    assert (ended["state"], ended["culprit"]) == ("failed", "party-2")
    all_settled(cluster, run, ["party-1"])
    assert account(cluster, "party-1")[1] == 0
    # The party itself comes back: its own ledger knows nothing of the lie, which it is told of, and refuses to go on.
    cluster.proxy.clear()
    cluster.start("party-2", wait=False)
    cluster.gives_up("party-2", 3)
    acknowledge(cluster, "party-2")
    cluster.start("party-2")


def test_other_bytes_for_a_step_are_refused_and_the_run_goes_on(cluster):
    trap = Trap(cluster, "party-1", "correlations", "after, but heard")
    run = cluster.begin()
    assert trap.sprung.wait(60)
    state, liar, body = cluster.state(run), Liar(cluster), b"other bytes"
    receipt = liar.receipt(state["plan_hash"], "joining", 0, body)
    with pytest.raises(Declined, match="has answered 'joining' with other bytes") as declined:
        liar.says(lambda line: line.deliver(run, "joining", body, receipt))
    assert declined.value.status == 409
    cluster.proxy.clear()
    cluster.start_again()
    cluster.finishes(run)


def test_a_party_that_repeats_itself_is_heard_once(cluster):
    trap = Trap(cluster, CURATOR, "update/1", "after, but heard")
    run = cluster.begin()
    assert trap.sprung.wait(60)
    cluster.proxy.clear()
    cluster.start(CURATOR)
    party, plan = Liar(cluster), cluster.state(run)["plan_hash"]
    ledger = Ledger.open(cluster.homes["party-2"].ledger)
    for entry in ledger.entries(run=run):
        body = ledger.answered(run, entry.step).reply
        receipt = party.receipt(plan, entry.step, entry.charge, body)
        for _ in range(3):
            party.says(lambda line, what=(run, entry.step, body, receipt): line.deliver(*what))
    ledger.close()
    cluster.finishes(run)


# Restored from older copies


def copied(database: Path, to: Path) -> None:
    """As a backup is made: a consistent copy in one file."""
    source, target = sqlite3.connect(database), sqlite3.connect(to)
    with source, target:
        source.backup(target)
    source.close()
    target.close()


def put_back(copy: Path, database: Path) -> None:
    for file in database.parent.glob(f"{database.name}*"):
        file.unlink()
    shutil.copy(copy, database)


def table_of(cluster, run):
    return sha256((cluster.home / "runs" / run / "table.csv").read_bytes()).hexdigest()


@pytest.mark.parametrize("parties_too", mostly_exhaustive([False, True], {1}))
@pytest.mark.parametrize(
    ("copied_at", "lost_at"), mostly_exhaustive([("joining", "update/2"), ("correlations", "parameters")], {1})
)
def test_a_curator_set_back_is_told_everything_again(cluster, tmp_path, copied_at, lost_at, parties_too):
    database, copy = cluster.home / "curator.db", tmp_path / "curator.db"
    first = Trap(cluster, CURATOR, copied_at, "after, but heard")
    run = cluster.begin()
    assert first.sprung.wait(60)
    copied(database, copy)
    second = Trap(cluster, CURATOR, lost_at, "lost after")
    cluster.start(CURATOR)
    assert second.sprung.wait(60)
    put_back(copy, database)
    cluster.proxy.clear()
    if parties_too:
        for name in cluster.names:
            cluster.kill(name)
    cluster.start_again()
    cluster.finishes(run)


@pytest.mark.exhaustive
def test_a_curator_set_back_behind_the_end_of_a_run_ends_it_again_alike(cluster, tmp_path):
    database, copy = cluster.home / "curator.db", tmp_path / "curator.db"
    trap = Trap(cluster, CURATOR, "update/1", "after, but heard")
    run = cluster.begin()
    assert trap.sprung.wait(60)
    copied(database, copy)
    cluster.proxy.clear()
    cluster.start(CURATOR)
    cluster.finishes(run)
    all_settled(cluster, run, cluster.names)
    before = table_of(cluster, run)
    cluster.kill(CURATOR)
    put_back(copy, database)
    cluster.start(CURATOR)
    assert cluster.state(run)["state"] == "running"
    cluster.finishes(run)
    assert table_of(cluster, run) == before


def acknowledge(cluster, name):
    program = Path(sysconfig.get_path("scripts")) / "subn-party"
    command = [program, "ledger", "acknowledge", "--home", cluster.homes[name].path]
    subprocess.run(command, check=True, capture_output=True)


@pytest.mark.parametrize(
    ("copied_at", "lost_at"),
    mostly_exhaustive([(None, "joining"), ("joining", "initial/1"), ("joining", "parameters")], {1}),
)
def test_a_ledger_set_back_serves_nobody_until_what_it_has_forgotten_is_charged(cluster, tmp_path, copied_at, lost_at):
    ledger, copy, run = cluster.homes["party-1"].ledger, tmp_path / "ledger.db", None
    if copied_at is None:
        copied(ledger, copy)
    else:
        first = Trap(cluster, "party-1", copied_at, "after, but heard", of="party-1")
        run = cluster.begin()
        assert first.sprung.wait(60)
        copied(ledger, copy)
    second = Trap(cluster, "party-1", lost_at, "lost after", of="party-1")
    if run is None:
        run = cluster.begin()
    else:
        cluster.start("party-1")
    assert second.sprung.wait(60)
    spent, _ = account(cluster, "party-1")
    put_back(copy, ledger)
    cluster.proxy.clear()
    for _ in range(2):  # however often it is started
        cluster.start("party-1", wait=False)
        cluster.gives_up("party-1", 3)
    assert "the ledger was set back" in cluster.log("party-1").read_text()
    acknowledge(cluster, "party-1")
    assert account(cluster, "party-1") == (spent, 0)
    cluster.start("party-1")
    ended = cluster.end(run)
    if lost_at == "parameters":  # all of its answers had arrived
        assert ended["state"] in ("finished", "failed")
    else:
        assert (ended["state"], ended["culprit"]) == ("failed", "party-1"), ended
        assert "which is over" in ended["reason"] or "takes no part" in ended["reason"]
    assert account(cluster, "party-1") == (spent, 0)
    assert audit.verify(cluster.homes["party-1"].audit) == []
    cluster.finishes(cluster.begin())

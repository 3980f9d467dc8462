"""Runs over networks as they are: cut off in every phase, slow and lossy, and gone for minutes."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.end_to_end.cluster import Cluster
from tests.networks.conftest import CURATOR, HERE, PARTIES
from tests.networks.names import NameServer
from tests.networks.wire import Wire

FAR = 0.4  # seconds each way: long enough to cut a party off between its task and its answer
LINES = {
    "200 ms": {"delay": 0.05},
    "200 ms, 5 % lost": {"delay": 0.05, "loss": 0.025},
    "200 ms, 5 % lost, 1 Mbit/s": {"delay": 0.05, "loss": 0.025, "rate": 1e6},
}  # a packet crosses two legs, there and back again: the delays of four add up


def begun(home: Cluster, **wishes: Any) -> str:
    return home.begin(*PARTIES, method="dp-subn", epsilon="4", **wishes)


def settled(home: Cluster, run: str) -> None:
    """Finished, with one receipt and one charge for every step of every party."""
    home.until(run, "finished", patience=240)
    found = home.run(run)
    assert set(found["spent"].values()) == {"4"}
    for name in PARTIES:
        entries = [entry for entry in home.sites[name].cli("ledger")["entries"] if entry["run"] == run]
        steps = [entry["step"] for entry in entries]
        assert len(steps) == len(set(steps))


def due(found: dict[str, Any], party: str) -> str:
    """The step that waits for this party."""
    waits = any(entry["party"] == party for entry in found["waiting_for"])
    return str(found["step"]) if waits else ""


CUTS: dict[str, dict[str, bool]] = {"both ways": {}, "it hears and is not heard": {"receives": True}}


@pytest.mark.parametrize("how", CUTS)
@pytest.mark.parametrize("party", PARTIES)
def test_a_party_is_cut_off_in_every_phase(wire: Wire, sound: Cluster, party: str, how: str) -> None:
    wire.set(*PARTIES.values(), delay=FAR)
    wire.cut(PARTIES[party], **CUTS[how])  # before it is asked to join
    run, cut = begun(sound), set[str]()
    stages = {step["stage"] for step in sound.run(run)["progress"] if party in step["of"]}
    while (found := sound.run(run))["state"] in ("joining", "running"):
        step = due(found, party)
        stage = step.partition("/")[0]
        if step and stage not in cut:
            wire.cut(PARTIES[party], **CUTS[how])
            time.sleep(1.5)
            if due(sound.run(run), party) == step:
                cut.add(stage)
            wire.mend(PARTIES[party])
        time.sleep(0.02)
    settled(sound, run)
    assert cut == stages


@pytest.mark.parametrize("noise", ["distributed", "selected"])
@pytest.mark.parametrize("line", LINES)
def test_a_poor_line(
    wire: Wire, sound: Cluster, line: str, noise: str, record_property: Callable[[str, object], None]
) -> None:
    wire.set(*PARTIES.values(), CURATOR, **LINES[line])
    before, began = sum(one.carried for one in wire.lines.values()), time.monotonic()
    settled(sound, begun(sound, noise=noise))
    sent = sum(one.carried for one in wire.lines.values()) - before
    said = f"{time.monotonic() - began:.1f} s, {sent:,} bytes"
    record_property(f"{noise}, {line}", said)
    print(f"\n{noise}, {line}: {said}")


def test_a_curator_that_is_gone_for_two_minutes(wire: Wire, sound: Cluster) -> None:
    wire.set(*PARTIES.values(), delay=FAR)
    run = begun(sound)
    while sound.run(run)["state"] == "joining":
        time.sleep(0.02)
    wire.cut(CURATOR)
    time.sleep(120)
    wire.mend(CURATOR)
    wire.set()
    began = time.monotonic()
    settled(sound, run)
    print(f"\nfinished {time.monotonic() - began:.1f} s after the curator came back")


@pytest.mark.parametrize("mood", ["silent", "fails"])
def test_names_that_cannot_be_resolved(wire: Wire, sound: Cluster, name_server: NameServer, mood: str) -> None:
    """The curator's name is not found while its line comes back, so that every party has to look it up again."""
    name_server.mood = mood
    wire.cut(CURATOR)
    for party in PARTIES:  # nobody keeps a connection that was open before
        sound.sites[party].running.stop()
    wire.mend(CURATOR)
    sound.serve(*PARTIES)
    run, before = begun(sound), name_server.asked
    time.sleep(8)
    assert sound.run(run)["state"] == "joining"
    assert name_server.asked > before or mood == "fails"
    name_server.mood = "answers"
    settled(sound, run)


def test_the_operator_is_told_where_a_run_waits(wire: Wire, sound: Cluster) -> None:
    wire.cut(PARTIES["party-2"])
    run = begun(sound)
    time.sleep(3)
    assert [entry["party"] for entry in sound.run(run)["waiting_for"]] == ["party-2"]
    assert HERE in wire.lines
    wire.mend(PARTIES["party-2"])
    settled(sound, run)

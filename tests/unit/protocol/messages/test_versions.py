"""Versions of the protocol: ranges, what two sides have in common, and what each is told if that is nothing."""

import asyncio
from pathlib import Path

import pytest
from fastapi import Request, Response
from hypothesis import given
from hypothesis import strategies as st

import party.curator_link.answers
import party.curator_link.client
from curator.http import dependencies as callers
from party.curator_link.client import Curator
from party.errors import Declined, Untrusted
from protocol.messages.signatures import VERSION_HEADER
from protocol.messages.versions import SPOKEN, Versions, disagreement
from tests.support.api import Api, with_api
from tests.support.curator import Desk
from tests.support.fake_curator import NOW, URL, FakeCurator
from tests.support.small_runs import identity

RANGES = st.tuples(st.integers(1, 9999), st.integers(1, 9999)).map(lambda two: Versions(min(two), max(two)))


@given(RANGES)
def test_a_range_is_read_as_it_is_written(versions: Versions) -> None:
    assert Versions.parse(str(versions)) == versions


@given(RANGES, RANGES)
def test_both_sides_take_the_newest_that_both_speak(one: Versions, other: Versions) -> None:
    spoken = set(range(one.oldest, one.newest + 1)) & set(range(other.oldest, other.newest + 1))
    assert one.common(other) == other.common(one) == max(spoken, default=None)


@pytest.mark.parametrize("text", ["", "0", "2-1", "1-", "-1", "1-2-3", "one", "1.0", "10000", "1,2", "²"])
def test_what_is_no_range_is_not_read(text: str) -> None:
    assert Versions.parse(text) is None


def test_the_side_that_is_behind_is_named_with_both_ranges() -> None:
    behind = disagreement(party=Versions(1, 2), curator=Versions(3, 5))
    assert "the curator speaks versions 3 to 5 of the protocol, the caller versions 1 to 2" in behind
    assert "bring this party or this operator's command up to date" in behind
    ahead = disagreement(party=Versions(4, 4), curator=Versions(3, 3))
    assert "the caller version 4: bring the curator up to date" in ahead


@pytest.mark.parametrize(
    ("said", "spoken", "status"),
    [
        (None, Versions(1, 1), 200),  # who says nothing speaks the first version
        ("1", Versions(1, 1), 200),
        ("1-7", Versions(1, 1), 200),
        ("1-2", Versions(2, 3), 200),
        ("2-3", Versions(1, 1), 400),
        ("1", Versions(2, 3), 400),
        (None, Versions(2, 3), 400),
        ("newest", Versions(1, 1), 400),
    ],
)
def test_the_curator_refuses_at_the_door_what_it_does_not_speak(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str | None, spoken: Versions, status: int
) -> None:
    monkeypatch.setattr(callers, "SPOKEN", spoken)

    async def story(api: Api) -> None:
        for answer in (
            await api.party(0, "GET", "/v1/roster", headers={VERSION_HEADER: said}),
            await api.operator("GET", "/v1/parties", headers={VERSION_HEADER: said} if said else {}),
        ):
            assert answer.status_code == status, answer.text
            assert Versions.parse(answer.headers[VERSION_HEADER]) == SPOKEN  # said in every answer
            if status == 400:
                assert answer.json()["type"].endswith(":wrong-version")

    with_api(Desk(tmp_path), story)


def ask(fake: FakeCurator) -> None:
    async def once() -> None:
        key = identity(0).signing
        line = Curator(URL, "party-1", key, fake.key.public, transport=fake.transport(), clock=lambda: NOW, tries=1)
        async with line:
            await line.my_runs()

    asyncio.run(once())


@pytest.mark.parametrize(("said", "who"), [("2-3", "this party"), ("3", "this party"), ("none", "")])
def test_a_party_refuses_a_curator_that_speaks_otherwise(said: str, who: str) -> None:
    fake = FakeCurator()
    fake.know("party-1", identity(0).signing.public, identity(0).exchange.public)
    fake.version = said
    with pytest.raises(Declined, match=f"bring {who}"):
        ask(fake)


@pytest.mark.parametrize("said", ["", "1", "2-3"])
def test_nobody_on_the_way_changes_the_version_that_the_curator_speaks(said: str) -> None:
    """Or both sides might be kept on an old version that a newer one has mended."""

    def changed(_request: Request, answer: Response) -> Response:
        answer.headers[VERSION_HEADER] = said
        return answer

    fake = FakeCurator()
    fake.know("party-1", identity(0).signing.public, identity(0).exchange.public)
    fake.version = "1-2"
    ask(fake)
    fake.after.append(changed)
    with pytest.raises(Untrusted):
        ask(fake)


def test_a_party_that_has_grown_out_of_the_curators_version_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (party.curator_link.client, party.curator_link.answers):
        monkeypatch.setattr(module, "SPOKEN", Versions(2, 4))
    fake = FakeCurator()
    fake.know("party-1", identity(0).signing.public, identity(0).exchange.public)
    with pytest.raises(Declined, match=r"the caller versions 2 to 4: bring the curator up to date"):
        ask(fake)

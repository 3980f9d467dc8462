"""Whatever is asked of the curator or of a party, by their own OpenAPI documents, they never fail.

One half of the requests comes with a key, a token or a party's signature; the other half as Schemathesis makes them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import requests

from crypto.randomness import Stream
from crypto.signing import sign
from curator.clock import system_clock
from protocol.exact import digest
from protocol.messages import signatures as a
from tests.support import owner
from tests.support.api import served
from tests.support.curator import Clock, Desk
from tests.support.fake_curator import FakeCurator
from tests.support.openapi import explored
from tests.support.party import Party, make_home, run_terms

_ROWS = 50  # the largest table that is waited for


class Now(Clock):
    def __call__(self) -> int:
        return system_clock()


@dataclass(frozen=True)
class Curator:
    url: str
    desk: Desk
    key: str
    finished: str  # a run

    def introduce(self, request: requests.PreparedRequest) -> None:
        """With an operator's key, and signed by a party: each door looks at its own."""
        body = request.body or b""
        content = body.encode() if isinstance(body, str) else body
        party = self.desk.parties[0]
        time_ms, nonce = self.desk.clock(), Stream.system().take(16).hex()
        text = a.request_text(str(request.method), request.path_url, digest(content), party.name, time_ms, nonce)
        request.headers["Authorization"] = f"Bearer {self.key}"
        request.headers[a.PARTY_HEADER] = quote(party.name)
        request.headers[a.TIME_HEADER] = str(time_ms)
        request.headers[a.NONCE_HEADER] = nonce
        request.headers[a.DIGEST_HEADER] = digest(content)
        request.headers[a.SIGNATURE_HEADER] = sign(party.identity.signing, a.REQUEST, text).hex()

    def bound(self, case: Any, real: bool) -> None:
        """Nothing that takes long: no long polls, no huge tables."""
        if "wait" in case.query:
            case.query["wait"] = 0
        if isinstance(case.query.get("rows"), int):
            case.query["rows"] = min(case.query["rows"], _ROWS)
        if real and "run" in case.path_parameters:
            case.path_parameters["run"] = self.finished
        if real and isinstance(case.body, dict) and "schema" in case.body:
            offers = "offers" in case.operation.path
            case.body["schema"] = self.desk.schema.to_json() if offers else self.desk.schema.hash


@pytest.fixture(scope="module")
def curator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Curator]:
    desk = Desk(tmp_path_factory.mktemp("curator"), clock=Now())
    run = desk.run("finished", noise="distributed")
    desk.finish(run)
    desk.run("waiting", noise="local")
    with served(desk) as (url, key):
        yield Curator(url, desk, key, run)


def test_no_request_makes_the_curator_fail(curator: Curator) -> None:
    seen = explored(curator.url, curator.introduce, curator.bound)
    assert {"200", "204", "401", "404", "409", "422"} <= seen  # the door was opened, not only knocked at


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[owner.Served]:
    """A party whose data owner has been asked about a run."""
    fake = FakeCurator()
    party = Party(make_home(tmp_path / "home", 0, fake, accept="ask"), 0, fake)
    fake.start(run_terms("run-1"))
    owner.elsewhere(party.turns)
    with owner.served(party) as found:
        yield found


def test_no_request_makes_a_party_fail(asked: owner.Served) -> None:
    def introduce(request: requests.PreparedRequest) -> None:
        request.headers["Authorization"] = f"Bearer {owner.TOKEN}"

    def bound(case: Any, real: bool) -> None:
        if real and "run" in case.path_parameters:
            case.path_parameters["run"] = "run-1"

    assert {"200", "401", "404"} <= explored(asked.url, introduce, bound)

"""Whatever is asked of the curator, by its own OpenAPI document, it never fails: Schemathesis over a real socket.

One half of the requests comes with an operator's key, or signed by a party; the other half as Schemathesis makes them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance

from crypto.randomness import Stream
from crypto.signing import sign
from curator.clock import system_clock
from protocol.exact import digest
from protocol.messages import signatures as a
from tests.support.api import served
from tests.support.curator import Clock, Desk
from tests.support.effort import examples

EXAMPLES = examples(50)  # of each operation
_ROWS = 50  # the largest table that is waited for


class Now(Clock):
    def __call__(self) -> int:
        return system_clock()


@dataclass(frozen=True)
class Server:
    url: str
    desk: Desk
    key: str
    finished: str  # a run


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    desk = Desk(tmp_path_factory.mktemp("curator"), clock=Now())
    run = desk.run("finished", noise="distributed")
    desk.finish(run)
    desk.run("waiting", noise="local")
    with served(desk) as (url, key):
        yield Server(url, desk, key, run)


def document(server: Server) -> Any:
    return schemathesis.openapi.from_url(f"{server.url}/openapi.json")


def test_no_request_makes_the_curator_fail(server: Server) -> None:
    session = requests.Session()
    seen: set[str] = set()
    for result in document(server).get_all_operations():
        operation = result.ok()
        _explore(server, session, operation, seen)
    assert {"200", "204", "401", "404", "409", "422"} <= seen  # the door was opened, not only knocked at


def _explore(server: Server, session: requests.Session, operation: Any, seen: set[str]) -> None:
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        derandomize=True,
    )
    @given(case=operation.as_strategy(), known=st.booleans(), real=st.booleans())
    def explore(case: Any, known: bool, real: bool) -> None:
        _bound(case, server, real)
        kwargs = case.as_transport_kwargs(base_url=server.url)
        request = session.prepare_request(requests.Request(**_requested(kwargs)))
        if known:
            _introduce(request, server)
        answer = session.send(request, timeout=20)
        seen.add(str(answer.status_code))
        case.validate_response(
            answer, checks=[not_a_server_error, content_type_conformance, response_schema_conformance]
        )

    explore()


def _bound(case: Any, server: Server, real: bool) -> None:
    """Nothing that takes long: no long polls, no huge tables. `real` names what exists, so that more is reached."""
    if "wait" in case.query:
        case.query["wait"] = 0
    if isinstance(case.query.get("rows"), int):
        case.query["rows"] = min(case.query["rows"], _ROWS)
    if real and "run" in case.path_parameters:
        case.path_parameters["run"] = server.finished
    if real and isinstance(case.body, dict) and "schema" in case.body:
        offers = "offers" in case.operation.path
        case.body["schema"] = server.desk.schema.to_json() if offers else server.desk.schema.hash


def _requested(kwargs: dict[str, Any]) -> dict[str, Any]:
    known = ("method", "url", "headers", "files", "data", "params", "auth", "cookies", "json")
    return {name: value for name, value in kwargs.items() if name in known}


def _introduce(request: requests.PreparedRequest, server: Server) -> None:
    """With an operator's key, and signed by a party: each door looks at its own."""
    body = request.body or b""
    content = body.encode() if isinstance(body, str) else body
    party = server.desk.parties[0]
    time_ms, nonce = server.desk.clock(), Stream.system().take(16).hex()
    text = a.request_text(str(request.method), request.path_url, digest(content), party.name, time_ms, nonce)
    request.headers["Authorization"] = f"Bearer {server.key}"
    request.headers[a.PARTY_HEADER] = quote(party.name)
    request.headers[a.TIME_HEADER] = str(time_ms)
    request.headers[a.NONCE_HEADER] = nonce
    request.headers[a.DIGEST_HEADER] = digest(content)
    request.headers[a.SIGNATURE_HEADER] = sign(party.identity.signing, a.REQUEST, text).hex()

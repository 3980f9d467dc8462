"""What strangers and parties may send over real sockets: heads first, bodies of known senders, all of it in time."""

import gc
import socket
import ssl
import threading
import time
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from http.client import HTTPResponse
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute, APIRouter

from crypto.signing import SigningKey
from curator.accounts.authentication import Authentication, Sender, SignedRequest
from curator.errors import Abandoned
from curator.home.certificates import Certificates
from curator.http import (
    bodies,
    connections,
    handshakes,
    health_routes,
    open_requests,
    operator_routes,
    party_routes,
    result_routes,
)
from curator.http.admission import AdmittingRoute
from curator.http.open_requests import OpenRequests
from curator.pages import parties, plan, runs
from curator.pages import routes as page_routes
from curator.pages.frame import PageRoute
from curator.runs import spool
from curator.runs.planning import Planned, Wanted
from curator.runs.spool import Spool
from curator.runs.views import RunViews
from curator.server import SecureLine
from protocol.errors import SchemaError
from protocol.exact import canonical_json, digest
from protocol.messages import signatures as a
from protocol.messages.tasks import decode
from tests.support.api import served
from tests.support.curator import Desk, Outgoing
from tests.support.raw_http import answer_to_head, connected, head, is_cut_off, signed_headers, status_of

MEGABYTES = 64 << 20
MOST_BUFFERED = 1 << 14  # bytes of one TLS record
JSON = {"Content-Type": "application/json"}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "SILENCE_SECONDS", 0.5)
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.5)
    monkeypatch.setattr(connections, "REST_SECONDS", 0.5)
    monkeypatch.setattr(open_requests, "PAUSE_SECONDS", 0.5)


@pytest.fixture
def desk(tmp_path: Any) -> Desk:
    return Desk(tmp_path)


@pytest.fixture
def url(desk: Desk) -> Iterator[str]:
    with served(desk) as (address, _key):
        yield address


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that nobody known calls."""
    with served(Desk(tmp_path_factory.mktemp("curator"))) as (address, _key):
        yield address


def signed(desk: Desk, number: int, method: str, target: str, body: bytes, **more: str) -> dict[str, str]:
    party = desk.parties[number]
    return signed_headers(party.identity.signing, party.name, method, target, body, desk.clock()) | more


def question(desk: Desk) -> tuple[str, Outgoing]:
    """A run that waits for everybody's acceptance, and the first party's."""
    run = desk.run(noise="distributed")
    found = desk.orchestrator.inbox("party-1")
    assert found is not None
    return run, desk.parties[0].handle(*found)


def outbox(desk: Desk, sent: Outgoing, number: int = 0, **changes: Any) -> tuple[str, dict[str, str]]:
    target = f"/v1/runs/{changes.get('run', sent.run)}/outbox/{changes.get('step', sent.step)}"
    receipt = {a.RECEIPT_HEADER: sent.receipt.hex()}
    return target, signed(desk, number, "PUT", target, changes.get("body", sent.body), **receipt)


def wait(found: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not found():
        assert time.monotonic() < deadline
        time.sleep(0.02)


# Heads alone


def test_every_route_that_takes_a_body_knows_its_caller_first() -> None:
    modules = (health_routes, operator_routes, party_routes, result_routes, page_routes, parties, plan, runs)
    routers = [found for module in modules for found in vars(module).values() if isinstance(found, APIRouter)]
    routes = [route for router in routers for route in router.routes if isinstance(route, APIRoute)]
    sending = [route for route in routes if not route.methods <= {"GET", "HEAD"}]
    assert len(sending) == 17
    assert [route.path for route in sending if not isinstance(route, AdmittingRoute | PageRoute)] == []


@pytest.mark.parametrize(
    ("method", "target", "status"),
    [
        ("PUT", "/v1/runs/r/outbox/joining", 401),
        ("PUT", "/v1/runs/r/receipts/joining", 401),
        ("PUT", "/v1/offers/rows", 401),
        ("POST", "/v1/keys", 401),
        ("POST", "/v1/schemas", 401),
        ("POST", "/v1/plans", 401),
        ("POST", "/v1/runs", 401),
        ("POST", "/v1/parties/codes", 401),
        ("POST", "/v1/enrolments", 413),
        ("POST", "/sign-in", 413),
        ("POST", "/sign-out", 303),
        ("POST", "/runs", 303),
        ("POST", "/parties/codes", 303),
        ("POST", "/v1/nowhere", 404),
        ("DELETE", "/v1/schemas", 405),
    ],
)
@pytest.mark.parametrize("named", [{}, {"Authorization": "Bearer " + "0" * 64, "Cookie": "subn_session=" + "0" * 64}])
def test_a_stranger_is_answered_without_a_byte_of_the_body(
    door: str, method: str, target: str, status: int, named: dict[str, str]
) -> None:
    found, _ = answer_to_head(door, method, target, named, MEGABYTES)
    assert found == status


def test_a_forged_signature_is_refused_without_a_byte_of_the_body(desk: Desk, url: str) -> None:
    target = "/v1/offers/rows"
    forged = signed_headers(SigningKey.generate(), "party-1", "PUT", target, b"", desk.clock())
    status, said = answer_to_head(url, "PUT", target, forged, 1000)
    assert (status, "not signed with the key of 'party-1'" in said) == (401, True)


def test_an_answer_that_nobody_waits_for_is_refused_without_a_byte_of_it(desk: Desk, url: str) -> None:
    run, sent = question(desk)
    size = len(sent.body)

    def refusal(length: int = size, number: int = 0, **changes: Any) -> tuple[int, str]:
        target, headers = outbox(desk, sent, number, **changes)
        return answer_to_head(url, "PUT", target, headers, length)

    assert refusal(run="none")[0] == 404
    status, said = refusal(step="correlations")
    assert (status, "the run waits for 'joining'" in said) == (409, True)
    status, said = refusal(length=MEGABYTES)
    assert (status, "67,108,864 bytes: at most 16,384 are expected" in said) == (413, True)
    desk.deliver(desk.parties[0], sent)
    status, said = refusal(body=b"another answer")
    assert (status, "with other bytes" in said) == (409, True)
    desk.orchestrator.cancel(run)
    status, said = refusal(number=1)
    assert (status, "is over: cancelled" in said) == (409, True)


def test_an_answer_that_is_here_already_is_not_read_again(desk: Desk, url: str) -> None:
    _, sent = question(desk)
    desk.deliver(desk.parties[0], sent)
    target, headers = outbox(desk, sent)
    assert answer_to_head(url, "PUT", target, headers, len(sent.body)) == (204, "")


def test_an_answer_says_how_long_it_is(desk: Desk, url: str) -> None:
    _, sent = question(desk)
    target, headers = outbox(desk, sent)
    with connected(url) as line:
        line.sendall(head("PUT", target, headers | {"Transfer-Encoding": "chunked"}))
        status, said = status_of(line)
    assert (status, "send Content-Length" in said) == (411, True)


@pytest.mark.parametrize("noise", ["selected", "distributed"])
@pytest.mark.parametrize(
    "wishes",
    [
        {"update": "accumulate"},
        {"update": "turns"},
        {"update": "joint"},
        {"update": "replace", "insiders": 0},
        {"method": "guided"},
        {"method": "privbayes"},
        {"method": "privabn"},
        {"method": "jtree"},
        {"method": "dp-ccbn"},
        {"method": "independent"},
    ],
    ids=str,
)
def test_every_answer_of_every_method_is_within_its_bound(desk: Desk, wishes: dict[str, Any], noise: str) -> None:
    """An honest answer always fits, and a hundredth of a megabyte more never does."""
    desk.run(noise=noise, **wishes)
    answered = 0
    while True:
        found = [(party, task) for party in desk.parties if (task := desk.orchestrator.inbox(party.name))]
        if not found:
            break
        for party, task in found:
            sent = party.handle(*task)
            live = desk.orchestrator.live[sent.run]
            most = live.largest_answer(party.name, sent.step)
            assert len(sent.body) <= most < len(sent.body) + 25_000
            desk.deliver(party, sent)
            answered += 1
    assert answered >= 6


def test_a_refusal_with_the_longest_reason_is_within_every_bound(desk: Desk) -> None:
    run = desk.run(noise="distributed")
    task = desk.orchestrator.inbox("party-1")
    assert task is not None
    sent = desk.parties[0].refuse(*task, reason="\x01" * 2000)
    assert decode(sent.body, "party-1").kind == "refusal"
    assert desk.orchestrator.awaits(run, "joining", "party-1", digest(sent.body), len(sent.body))


# In time


def trickle(line: socket.socket, piece: bytes, seconds: float = 5) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        line.sendall(piece)
        time.sleep(0.03)


def test_a_connection_that_says_nothing_is_cut_off(door: str) -> None:
    began = time.monotonic()
    with connected(door) as line:
        assert is_cut_off(line)
    assert time.monotonic() - began < 5


def test_a_head_that_comes_byte_by_byte_is_cut_off(door: str) -> None:
    with connected(door) as line:
        line.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        with pytest.raises(ConnectionError):
            trickle(line, b"x")


def test_a_second_head_on_a_connection_has_its_time_too(door: str) -> None:
    with connected(door) as line:
        for _ in range(3):
            line.sendall(head("GET", "/healthz", {}))
            assert status_of(line)[0] == 200
            time.sleep(0.4)  # an idle connection stays: the next head has not begun
        line.sendall(b"GET /healthz HT")
        assert is_cut_off(line)


def test_half_a_body_does_not_stay_for_ever(desk: Desk, url: str) -> None:
    target, body = "/v1/offers/rows", b"{" + b" " * 1000
    headers = signed(desk, 0, "PUT", target, body, **JSON)
    with connected(url) as line:
        line.sendall(head("PUT", target, headers, len(body)) + body[:500])
        status, said = status_of(line)
        assert (status, "did not arrive in time" in said) == (408, True)
        assert is_cut_off(line)


def test_who_goes_on_sending_after_the_answer_hears_it_and_is_cut_off(url: str) -> None:
    """The rest is thrown away for a while: an end at once would take the answer from the sender."""
    with connected(url) as line:
        line.sendall(head("PUT", "/v1/offers/rows", {}, MEGABYTES))
        line.sendall(bytes(1 << 20))
        assert status_of(line)[0] == 401
        with pytest.raises(ConnectionError):
            trickle(line, bytes(1 << 14))


@pytest.mark.parametrize("path", ["/v1/plans", "/plan"])
def test_a_plan_is_given_up_when_its_client_goes_away(desk: Desk, path: str) -> None:
    asked, gone = threading.Event(), threading.Event()

    def work_out(_wanted: Wanted, abandoned: threading.Event) -> Planned:
        asked.set()
        if abandoned.wait(20):
            gone.set()
        raise Abandoned("nobody waits")

    planner = desk.orchestrator.planner
    desk.orchestrator.planner = replace(planner, seams=replace(planner.seams, work_out=work_out))
    with served(desk) as (url, key):
        if path == "/plan":
            cookie = httpx.post(f"{url}/sign-in", data={"key": key}).headers["Set-Cookie"].partition(";")[0]
            request = head("GET", f"/plan?schema={desk.schema.hash}", {"Cookie": cookie})
        else:
            body = canonical_json({"schema": desk.schema.hash, "epsilon": "1"})
            request = head("POST", path, {"Authorization": f"Bearer {key}"} | JSON, len(body)) + body
        with connected(url) as line:
            line.sendall(request)
            assert asked.wait(10)
            assert not gone.is_set()
        assert gone.wait(5)


def test_a_handshake_that_is_not_finished_is_cut_off(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshakes, "HANDSHAKE_SECONDS", 0.5)
    certificates = Certificates(desk.home)
    certificates.make(["127.0.0.1"])
    with served(desk, SecureLine(certificates)) as (url, _key), connected(url) as line:
        line.sendall(b"\x16\x03\x01")
        assert is_cut_off(line)


def test_of_many_begun_handshakes_the_newest_stay_and_callers_are_served(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handshakes, "MOST_HANDSHAKES", 50)
    certificates = Certificates(desk.home)
    certificates.make(["127.0.0.1"])
    begun = bytes.fromhex("16030140000100") + b"a" * 10
    trusted = ssl.create_default_context(cafile=certificates.ca_file)
    with served(desk, SecureLine(certificates)) as (url, _key), ExitStack() as strangers:
        lines = [strangers.enter_context(connected(url)) for _ in range(300)]
        for line in lines:
            with suppress(ConnectionError):  # cut off already
                line.sendall(begun)
        assert all(is_cut_off(line) for line in lines[:250])
        answer = httpx.get(f"{url.replace('http:', 'https:')}/healthz", verify=trusted)
        assert answer.status_code == 200
        kept = [one for one in gc.get_objects() if isinstance(one, SSLProtocol)]
        assert len(kept) * SSLProtocol.max_size <= 51 * MOST_BUFFERED
        lines[-1].setblocking(False)
        with pytest.raises(BlockingIOError):
            lines[-1].recv(1)


# Bodies full of mistakes


def sent_body(desk: Desk, url: str, method: str, target: str, body: bytes) -> httpx.Response:
    headers = signed(desk, 0, method, target, body, **JSON)
    return httpx.request(method, url + target, content=body, headers=headers, timeout=20)


def unknown_keys(count: int) -> bytes:
    return ("{" + ",".join(f'"{number:x}":1' for number in range(count)) + "}").encode()


def test_an_offer_full_of_unknown_keys_is_refused_for_their_number(desk: Desk, url: str) -> None:
    answer = sent_body(desk, url, "PUT", "/v1/offers/rows", unknown_keys(100_000))
    assert answer.status_code == 422
    assert answer.json()["detail"] == "body: this is not JSON that can be read: it has more than 100 keys"


def test_an_offer_may_have_a_schema_of_many_keys(desk: Desk, url: str) -> None:
    named = canonical_json({"title": "Many", "attributes": [{"name": "a", "kind": "boolean", "true": [":"] * 200}]})
    answer = sent_body(desk, url, "PUT", "/v1/offers/rows", canonical_json({"schema": named.decode(), "rows": 10}))
    assert "keys" not in answer.text
    assert "true" in answer.json()["detail"]  # the schema was read, and repeats a text


def test_of_many_mistakes_twenty_are_told(desk: Desk, url: str) -> None:
    told = sent_body(desk, url, "PUT", "/v1/offers/rows", unknown_keys(90)).json()["detail"].split("; ")
    assert len(told) == 21
    assert told[-1] == "and 72 more mistakes"  # two fields are missing besides


@pytest.mark.parametrize(("method", "target"), [("POST", "/v1/keys"), ("PUT", "/v1/runs/r/receipts/joining")])
def test_keys_and_promises_are_short(desk: Desk, url: str, method: str, target: str) -> None:
    body = b" " * (bodies.TINY + 1)
    status, said = answer_to_head(url, method, target, signed(desk, 0, method, target, body, **JSON), len(body))
    assert (status, "larger than 4,096 bytes" in said) == (413, True)


# In number


def test_strangers_take_no_place_from_those_who_are_known(
    desk: Desk, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 5)
    monkeypatch.setattr(connections, "HEAD_SECONDS", 30)
    target = "/v1/inbox?wait=3"
    with connected(url) as party:
        party.sendall(head("GET", target, signed(desk, 0, "GET", target, b"")))
        time.sleep(0.3)
        with ExitStack() as strangers:
            lines = [strangers.enter_context(connected(url)) for _ in range(12)]
            assert httpx.get(f"{url}/healthz").status_code == 200
            assert all(is_cut_off(line) for line in lines[:8])
            assert status_of(party)[0] == 204


@pytest.fixture
def admitted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The parties whose requests were admitted, one after the other."""
    found: list[str] = []
    enter = OpenRequests.enter

    def noting(requests: OpenRequests, scope: Any, party: str) -> None:
        enter(requests, scope, party)
        found.append(party)

    monkeypatch.setattr(OpenRequests, "enter", noting)
    return found


def poll(desk: Desk, number: int = 0) -> bytes:
    target = "/v1/inbox?wait=30"
    return head("GET", target, signed(desk, number, "GET", target, b""))


def test_a_party_with_many_open_requests_is_refused_and_no_other(
    desk: Desk, url: str, admitted: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_requests, "MOST_OPEN", 3)
    monkeypatch.setattr(connections, "HEAD_SECONDS", 30)
    with ExitStack() as stack:
        first, second, third, fourth, others = (stack.enter_context(connected(url)) for _ in range(5))
        for line in (first, second, third):
            line.sendall(poll(desk))
        wait(lambda: len(admitted) == 3)
        fourth.sendall(poll(desk))
        status, said = status_of(fourth)
        assert (status, "party-1 has 3 requests open already" in said) == (429, True)
        others.sendall(poll(desk, 1))
        wait(lambda: admitted == ["party-1"] * 3 + ["party-2"])
        desk.run(noise="distributed")  # a task for everybody
        assert [status_of_bytes(line) for line in (first, second, third, others)] == [200] * 4
        fourth.sendall(poll(desk))
        assert status_of_bytes(fourth) == 200


def status_of_bytes(line: socket.socket) -> int:
    answer = HTTPResponse(line)
    answer.begin()
    answer.read()
    return answer.status


def test_a_party_with_many_bodies_is_refused_before_a_byte_of_the_next(
    desk: Desk, url: str, admitted: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "SILENCE_SECONDS", 20)
    target, body = "/v1/offers/rows", b"{" + b" " * 1000
    with ExitStack() as stack:
        for _ in range(open_requests.MOST_BODIES):
            line = stack.enter_context(connected(url))
            line.sendall(head("PUT", target, signed(desk, 0, "PUT", target, body, **JSON), len(body)))
        wait(lambda: len(admitted) == open_requests.MOST_BODIES)
        with connected(url) as third:
            third.sendall(head("PUT", target, signed(desk, 0, "PUT", target, body, **JSON), len(body)))
            answer = HTTPResponse(third)
            answer.begin()
            assert (answer.status, answer.headers["Retry-After"]) == (429, "5")
            assert b"sends 2 bodies already" in answer.read()
        taken = httpx.put(url + target, content=body, headers=signed(desk, 1, "PUT", target, body, **JSON))
        assert (taken.status_code, "JSON" in taken.text) == (422, True)  # another party's is read
        target = "/v1/time"
        assert httpx.get(url + target, headers=signed(desk, 0, "GET", target, b"")).status_code == 200


def test_offers_that_take_long_to_read_leave_the_threads_to_others(
    desk: Desk, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once, most, hold, lock = 0, 0, threading.Event(), threading.Lock()

    def slow(_text: str) -> None:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        hold.wait(20)
        with lock:
            at_once -= 1
        raise SchemaError("too slow")

    monkeypatch.setattr(party_routes.Schema, "parse", slow)
    monkeypatch.setattr(open_requests, "MOST_BODIES", 60)
    monkeypatch.setattr(open_requests, "MOST_OPEN", 60)
    target, body = "/v1/offers/rows", canonical_json({"schema": "{}", "rows": 10})
    with ExitStack() as stack:
        lines = [stack.enter_context(connected(url)) for _ in range(45)]  # more than there are threads
        for line in lines:
            line.sendall(head("PUT", target, signed(desk, 0, "PUT", target, body, **JSON), len(body)) + body)
        wait(lambda: most > 0)
        try:
            target = "/v1/time"
            headers = signed(desk, 1, "GET", target, b"")
            assert httpx.get(url + target, headers=headers, timeout=10).status_code == 200
        finally:
            hold.set()
        assert {status_of(line)[0] for line in lines} == {422}
    assert most == 1


def test_a_party_that_repeats_refused_requests_waits_and_holds_one_thread(
    desk: Desk, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_requests, "MOST_OPEN", 0)
    at_once, most, lock, admit = 0, 0, threading.Lock(), Authentication.admit

    def slow(authentication: Authentication, sender: Sender, request: SignedRequest) -> None:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        time.sleep(0.02)
        with lock:
            at_once -= 1
        admit(authentication, sender, request)

    monkeypatch.setattr(Authentication, "admit", slow)
    began = time.monotonic()
    with ExitStack() as stack:
        lines = [stack.enter_context(connected(url)) for _ in range(10)]
        for line in lines:
            line.sendall(poll(desk))
        assert [status_of(line)[0] for line in lines] == [429] * 10
    assert time.monotonic() - began >= 0.5 + 10 * 0.02
    assert most == 1


def test_a_stranger_does_not_stand_in_the_line_of_the_party_whose_name_it_claims(
    desk: Desk, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_line: list[str] = []
    admission = OpenRequests.admission

    def noting(requests: OpenRequests, party: str) -> Any:
        in_line.append(party)
        return admission(requests, party)

    monkeypatch.setattr(OpenRequests, "admission", noting)
    target = "/v1/time"
    forged = signed(desk, 0, "GET", target, b"") | {a.SIGNATURE_HEADER: "00" * 64}
    assert [httpx.get(url + target, headers=forged).status_code for _ in range(3)] == [401] * 3
    assert in_line == []
    assert httpx.get(url + target, headers=signed(desk, 0, "GET", target, b"")).status_code == 200
    assert in_line == ["party-1"]


def test_signatures_of_strangers_take_few_threads(desk: Desk, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    at_once, most, lock, prove = 0, 0, threading.Lock(), Authentication.sender

    def slow(authentication: Authentication, request: SignedRequest) -> Sender:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        time.sleep(0.05)
        with lock:
            at_once -= 1
        return prove(authentication, request)

    monkeypatch.setattr(Authentication, "sender", slow)
    target = "/v1/time"
    with ExitStack() as stack:
        lines = [stack.enter_context(connected(url)) for _ in range(20)]
        for number, line in enumerate(lines):
            forged = signed(desk, 0, "GET", target, b"") | {a.PARTY_HEADER: f"nobody-{number}"}
            line.sendall(head("GET", target, forged))
        assert {status_of(line)[0] for line in lines} == {401}
    assert most == open_requests.MOST_PROVING


def test_a_party_reads_its_lists_one_after_the_other(desk: Desk, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    at_once, most, lock = 0, 0, threading.Lock()

    def slow(*_asked: Any) -> list[Any]:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        time.sleep(0.05)
        with lock:
            at_once -= 1
        return []

    monkeypatch.setattr(RunViews, "receipts", slow)
    monkeypatch.setattr(RunViews, "of_party", slow)
    with ExitStack() as stack:
        lines = [stack.enter_context(connected(url)) for _ in range(6)]
        for line, target in zip(lines, ["/v1/receipts", "/v1/runs/mine"] * 3, strict=True):
            line.sendall(head("GET", target, signed(desk, 0, "GET", target, b"")))
        assert {status_of(line) for line in lines} == {(200, "[]")}
    assert most == 1


def test_a_newcomer_takes_the_place_of_the_caller_who_holds_most(
    desk: Desk, url: str, admitted: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 5)
    monkeypatch.setattr(connections, "HEAD_SECONDS", 30)
    with ExitStack() as stack:
        lines = [stack.enter_context(connected(url)) for _ in range(5)]
        for number, line in zip([1, 0, 0, 0, 0], lines, strict=True):
            line.sendall(poll(desk, number))
        wait(lambda: len(admitted) == len(lines))
        assert httpx.get(f"{url}/healthz", timeout=20).status_code == 200
        assert is_cut_off(lines[1])
        desk.run(noise="distributed")
        assert [status_of_bytes(line) for line in (lines[0], *lines[2:])] == [200] * 4


# The spool


def test_a_large_answer_arrives_on_disk_without_a_name(desk: Desk, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "SILENCE_SECONDS", 20)
    monkeypatch.setattr(spool, "IN_MEMORY", 100)
    monkeypatch.setattr(bodies, "PIECE", 100)
    opened: list[Any] = []
    made = spool.tempfile.SpooledTemporaryFile
    monkeypatch.setattr(
        spool.tempfile, "SpooledTemporaryFile", lambda *how, **where: opened.append(made(*how, **where)) or opened[-1]
    )
    run, sent = question(desk)
    target, headers = outbox(desk, sent)
    with connected(url) as line:
        line.sendall(head("PUT", target, headers, len(sent.body)) + sent.body[:-1])
        wait(lambda: bool(opened) and opened[0].name is not None)
        (file,) = opened
        assert [*(desk.home / "spool").iterdir()] == []
        assert (desk.home / "spool").stat().st_mode & 0o777 == 0o700
        status, said = answer_to_head(url, "PUT", *outbox(desk, sent), len(sent.body))
        assert (status, "arriving already" in said) == (503, True)
        line.sendall(sent.body[-1:])
        assert status_of(line)[0] == 204
    assert file.closed
    assert desk.views.run(run).progress[0].answered == ["party-1"]


def test_an_answer_that_was_changed_on_the_way_is_not_taken(desk: Desk, url: str) -> None:
    run, sent = question(desk)
    target, headers = outbox(desk, sent)
    changed = sent.body[:-1] + bytes([sent.body[-1] ^ 1])
    with connected(url) as line:
        line.sendall(head("PUT", target, headers, len(changed)) + changed)
        status, said = status_of(line)
    assert (status, "not the one whose digest is signed" in said) == (401, True)
    assert desk.views.run(run).state == "joining"
    assert httpx.put(url + target, content=sent.body, headers=outbox(desk, sent)[1]).status_code == 204


def test_a_disk_without_room_holds_the_run_up_and_blames_nobody(
    desk: Desk, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full:
        def __enter__(self) -> "Full":
            return self

        def __exit__(self, *_error: object) -> None:
            pass

        def write(self, _data: bytes) -> None:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(spool.tempfile, "SpooledTemporaryFile", lambda *_how, **_where: Full())
    run, sent = question(desk)
    target, headers = outbox(desk, sent)
    answer = httpx.put(url + target, content=sent.body, headers=headers)
    assert answer.status_code == 503
    assert "No space left on device" in answer.json()["detail"]
    desk.orchestrator.tick()
    assert desk.orchestrator.paused() == 1
    assert desk.orchestrator.view(run).reason.startswith("paused: the curator's disk takes no answers now")


def test_the_spool_has_bounds_and_keeps_nothing(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "MOST_BODIES", 3)
    (tmp_path / "spool").mkdir()
    (tmp_path / "spool" / "left").write_bytes(b"by a kill")
    places = Spool(tmp_path / "spool", 1000)
    assert [*(tmp_path / "spool").iterdir()] == []
    with places.place(("run", "step", "a"), 600):
        with pytest.raises(spool.Busy, match="too many answers"), places.place(("run", "step", "b"), 401):
            pass
        with (
            places.place(("run", "step", "b"), 1),
            places.place(("run", "step", "c"), 1),
            pytest.raises(spool.Busy, match="too many answers"),
            places.place(("run", "step", "d"), 1),
        ):
            pass
    with places.place(("run", "step", "b"), 1000) as file:
        file.write(b"x")

"""The serving process and its local interface: who may ask, what it says of its health, how it starts and stops."""

import asyncio
import json
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from curator.home.tls import client_context
from curator.home.x509 import new_ca, new_server_certificate, utc_now
from party import connections, service
from party.app import add_metrics, make_app
from party.commands.main import main
from party.curator_link.client import Backoff
from party.errors import HomeInUse, LedgerError, RolledBack, SettingsError
from party.home.lock import served_alone
from party.home.tokens import METRICS_TOKEN_FILE, TOKEN_FILE, token_of
from party.logs import JsonLines, log_libraries
from party.operations.health import Health
from party.operations.metrics import Metrics
from protocol.errors import SubnError
from tests.support.fake_curator import NOW, FakeCurator
from tests.support.party import NO_DELTA, Party, make_home, run_terms, write_keys

RUN = "run-1"
TOKEN = "the-token"


@pytest.fixture
def fake() -> FakeCurator:
    return FakeCurator()


@pytest.fixture
def party(tmp_path, fake) -> Party:
    """Its data owner has been asked about a run."""
    home = make_home(tmp_path / "home", 0, fake, accept="ask", more="\n[local]\nport = 0\n")
    write_keys(home, 0)
    asked = Party(home, 0, fake)
    fake.start(run_terms())
    asked.turns()
    return asked


def local(
    party: Party, method: str, path: str, token: str | None = TOKEN, trouble: str | None = None, **more: Any
) -> Any:
    async def once() -> httpx.Response:
        app = make_app(party.opened, TOKEN, Health(party.opened, lambda: trouble))
        headers = {"Authorization": f"Bearer {token}".encode()} if token is not None else more.pop("headers", {})
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
            return await client.request(method, path, headers=headers, **more)

    return asyncio.run(once())


# The local interface

PRIVATE = [
    ("GET", "/v1/requests"),
    ("GET", f"/v1/requests/{RUN}"),
    ("POST", f"/v1/requests/{RUN}/accept"),
    ("POST", f"/v1/requests/{RUN}/refuse"),
    ("GET", "/v1/ledger"),
    ("GET", "/v1/audit"),
]


@pytest.mark.parametrize(("method", "path"), PRIVATE)
@pytest.mark.parametrize("token", [None, "", "another", TOKEN + "x", "é"])
def test_without_the_token_nothing_is_told_and_nothing_happens(party, method, path, token):
    answer = local(party, method, path, token)
    assert answer.status_code == 401
    assert "patients" not in answer.text
    assert party.ledger.request(RUN).state == "asked"


def test_requests_are_shown_as_on_the_command_line(party):
    (facts,) = local(party, "GET", "/v1/requests").json()
    assert (facts["run"], facts["state"], facts["price"]) == (RUN, "asked", "1")
    assert facts["steps"]
    assert local(party, "GET", f"/v1/requests/{RUN}").json() == facts


def test_a_run_can_be_accepted_once(party, fake):
    assert local(party, "POST", f"/v1/requests/{RUN}/accept").json()["state"] == "accepted"
    party.turns()
    assert fake.runs[RUN].state.waiting_for == (1, 2)
    late = local(party, "POST", f"/v1/requests/{RUN}/refuse")
    assert late.status_code == 409
    assert late.headers["content-type"] == "application/problem+json"
    assert "is active already" in late.json()["detail"]


@pytest.mark.parametrize(
    ("body", "reason"), [({"reason": "no"}, "no"), (None, "the data owner does not want to take part")]
)
def test_a_run_can_be_refused(party, fake, body, reason):
    assert local(party, "POST", f"/v1/requests/{RUN}/refuse", json=body).json()["state"] == "refused"
    party.turns()
    assert fake.runs[RUN].reason == reason
    assert [entry["by"] for entry in party.audited() if entry["event"] == "decided"] == ["local interface"]


def test_unknown_runs_and_fields_are_refused(party):
    assert local(party, "GET", "/v1/requests/run-9").status_code == 404
    assert local(party, "POST", f"/v1/requests/{RUN}/refuse", json={"why": "no"}).status_code == 422


def test_account_and_audit_log(party):
    books = local(party, "GET", "/v1/ledger").json()
    assert books == {
        "accounts": {"patients": {"total": "4", "spent": "0", "reserved": "0", "left": "4"} | NO_DELTA},
        "entries": [],
    }
    log = local(party, "GET", "/v1/audit").json()
    assert [entry["event"] for entry in log["entries"]] == ["judged", "asked"]
    assert log["problems"] == []
    assert len(local(party, "GET", "/v1/audit?search=judged").json()["entries"]) == 1
    assert len(local(party, "GET", "/v1/audit?limit=1").json()["entries"]) == 1


def test_health_needs_no_token_and_tells_the_truth(party, monkeypatch):
    assert local(party, "GET", "/healthz", None).json() == {"status": "alive"}
    checks = {"ledger": "ok", "disk": "ok", "clock": "ok", "curator": "ok"}
    assert local(party, "GET", "/readyz", None).json() == {"status": "ready", "checks": checks}
    away = local(party, "GET", "/readyz", None, trouble="the curator does not answer")
    assert (away.status_code, away.json()) == (
        503,
        {"status": "not ready", "reason": "curator: the curator does not answer"},
    )

    def broken(_state: str) -> None:
        raise LedgerError("ledger.db: cannot be used")

    monkeypatch.setattr(party.ledger, "requests", broken)
    assert local(party, "GET", "/readyz", None).json()["reason"] == "ledger: ledger.db: cannot be used"
    monkeypatch.undo()
    monkeypatch.setattr("party.operations.health.SMALLEST_FREE", 1 << 62)
    assert "MiB are needed: make room" in local(party, "GET", "/readyz", None).json()["reason"]


def test_the_token_is_made_once_for_its_owner_alone(tmp_path):
    first = token_of(tmp_path)
    assert len(first) == 64
    assert token_of(tmp_path) == first
    assert (tmp_path / TOKEN_FILE).stat().st_mode & 0o777 == 0o600


SPOILT = [b"", b"\n", b"the-token\n", b"ab" * 31, b"AB" * 32, b"ab" * 32 + b"\n\n", "ä".encode() * 32, b"\xff" * 64]


@pytest.mark.parametrize("name", [TOKEN_FILE, METRICS_TOKEN_FILE])
@pytest.mark.parametrize("content", SPOILT)
def test_a_token_that_is_not_as_written_refuses_to_serve(party, fake, name, content):
    (party.home.path / name).write_bytes(content)
    party.opened.ledger.close()
    with pytest.raises(SettingsError, match=f"{name} does not hold the token that this program wrote: remove the file"):
        service.serve(party.home, lambda *_, **__: None, transport=fake.transport())
    assert (party.home.path / name).read_bytes() == content


@pytest.mark.parametrize(("method", "path"), [*PRIVATE, ("GET", "/metrics")])
@pytest.mark.parametrize("token", [None, ""])
def test_without_credentials_even_an_empty_token_opens_nothing(party, method, path, token):
    """As the first fence, the file is refused; this is the second."""

    async def once() -> int:
        health = Health(party.opened, lambda: None)
        app = make_app(party.opened, "", health)
        add_metrics(app, Metrics(health), ("", ""))
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
            return (await client.request(method, path, headers=headers)).status_code

    assert asyncio.run(once()) == 401
    assert party.ledger.request(RUN).state == "asked"


@pytest.mark.parametrize("origin", ["https://evil.example", "http://127.0.0.1:9999", "null", "http://[::1"])
def test_a_post_from_another_origin_does_nothing_even_with_the_token(party, origin):
    headers = {"Authorization": f"Bearer {TOKEN}", "Origin": origin}
    for path in (f"/v1/requests/{RUN}/accept", f"/v1/requests/{RUN}/refuse", "/v1/sign-in"):
        assert local(party, "POST", path, None, headers=headers).status_code == 403
    assert party.ledger.request(RUN).state == "asked"
    own = headers | {"Origin": "http://127.0.0.1"}
    assert local(party, "POST", f"/v1/requests/{RUN}/accept", None, headers=own).status_code == 200


# The process


class Service:
    """`service.serve` in this process, with what it logs."""

    def __init__(self, party: Party, fake: FakeCurator) -> None:
        party.opened.ledger.close()
        self.home, self.fake = party.home, fake
        self.logged: list[tuple[str, dict[str, Any]]] = []

    def log(self, event: str, **fields: Any) -> None:
        self.logged.append((event, fields))

    def until(self, event: str, then: Callable[[dict[str, Any]], None]) -> None:
        """Serve; when `event` is logged call `then`, which has to bring the end."""
        threading.Thread(target=self._watch, args=(event, then), daemon=True).start()
        service.serve(self.home, self.log, transport=self.fake.transport(), clock=lambda: NOW, backoff=Backoff(0, 0))

    def _watch(self, event: str, then: Callable[[dict[str, Any]], None]) -> None:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            for found, fields in list(self.logged):
                if found == event:
                    then(fields)
                    return
            time.sleep(0.01)


def stop(_fields: dict[str, Any]) -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def patient(fake: FakeCurator) -> None:
    """Hold long polls for a moment, as a real inbox does."""
    inner = fake.app

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"] == "/v1/inbox":
            await asyncio.sleep(0.05)
        await inner(scope, receive, send)

    fake.transport = lambda: httpx.ASGITransport(app=slow)  # type: ignore[method-assign]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_a_signal_and_ends_cleanly(party, fake, number):
    patient(fake)
    running = Service(party, fake)
    running.until("waiting for the data owner's word", lambda _fields: os.kill(os.getpid(), number))
    events = [event for event, _ in running.logged]
    assert events[0] == "listening"
    assert running.logged[-1] == ("stopped", {"reason": "asked to stop"})
    audited = [entry["event"] for entry in party.audited()]
    assert audited[-2:] == ["started", "stopped"]
    with served_alone(party.home.lock):
        pass  # the lock is free again


def test_the_local_interface_listens_on_loopback_while_it_serves(party, fake):
    patient(fake)
    running, seen = Service(party, fake), []

    def look(fields: dict[str, Any]) -> None:
        try:
            token = (party.home.path / TOKEN_FILE).read_text().strip()
            answer = httpx.get(f"{fields['url']}/v1/requests", headers={"Authorization": f"Bearer {token}"})
            seen.append((fields["url"], answer.json()[0]["run"]))
            assert party.home.address.read_text() == fields["url"] + "\n"
        finally:
            stop(fields)

    running.until("listening", look)
    ((url, run),) = seen
    assert url.startswith("http://127.0.0.1:")
    assert run == RUN
    assert not party.home.address.exists()  # it has stopped


def test_pages_for_browsers_elsewhere_are_served_by_tls_under_their_names_alone(fake, tmp_path, capsys):
    """With a port published for 0.0.0.0, `page` asked an address that the guard refused, and blamed the token."""
    names = 'host = "0.0.0.0"\nnames = ["pages.example:9000"]\ncertificate = "pages.pem"'
    home = make_home(tmp_path / "home", 0, fake, accept="ask", more=f"\n[local]\nport = 0\n{names}\n")
    write_keys(home, 0)
    ca = new_ca(utc_now())
    made = new_server_certificate(ca, ["pages.example"], utc_now())
    (home.path / "pages.pem").write_text(made.key_pem + made.certificate_pem)
    patient(fake)
    running, seen = Service(Party(home, 0, fake), fake), []

    def look(fields: dict[str, Any]) -> None:
        try:
            assert (main(["page", "--home", str(home.path)]), main(["ready", "--home", str(home.path)])) == (0, 0)
            address = httpx.URL(capsys.readouterr().out.splitlines()[0])
            assert (address.scheme, address.host, address.port) == ("https", "pages.example", 9000)
            trusted, port = client_context(ca.certificate_pem), httpx.URL(fields["url"]).port
            there, asked = address.copy_with(host="127.0.0.1", port=port), {"sni_hostname": "pages.example"}
            with httpx.Client(verify=trusted, trust_env=False) as browser:
                refused = browser.get(there, headers={"Host": "other.example"}, extensions=asked)
                signed_in = browser.get(there, headers={"Host": "pages.example:9000"}, extensions=asked)
                metrics = browser.get(there.join("/metrics"), extensions=asked)
            cookie = signed_in.headers["set-cookie"].lower()
            seen.append((refused.status_code, signed_in.status_code, "secure" in cookie, metrics.status_code))
        finally:
            stop(fields)

    running.until("listening", look)
    assert seen == [(421, 200, True, 401)]


def test_silent_connections_leave_the_party_its_file_handles(party, fake):
    """1,100 of them took every handle, and the party took part in nothing."""
    patient(fake)
    running, seen = Service(party, fake), []

    def flood(fields: dict[str, Any]) -> None:
        address = httpx.URL(fields["url"])
        try:
            lines = [socket.create_connection((address.host, address.port), timeout=5) for _ in range(300)]
            answer = httpx.get(f"{fields['url']}/healthz")
            seen.append((answer.status_code, sum(not is_cut_off(line) for line in lines)))
            for line in lines:
                line.close()
        finally:
            stop(fields)

    running.until("listening", flood)
    assert seen == [(200, 49)]


def is_cut_off(line: socket.socket) -> bool:
    line.settimeout(0.01)
    try:
        return line.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: "])
def test_a_connection_without_a_whole_head_does_not_stay(party, fake, monkeypatch, sent):
    monkeypatch.setattr(connections, "QUIET_SECONDS", 0.5)
    patient(fake)
    running, seen = Service(party, fake), []

    def trickle(fields: dict[str, Any]) -> None:
        address = httpx.URL(fields["url"])
        try:
            with socket.create_connection((address.host, address.port)) as line:
                line.sendall(sent)
                for _ in range(100):
                    if is_cut_off(line):
                        seen.append("cut off")
                        break
                    line.sendall(sent[-1:])
                    time.sleep(0.05)
        finally:
            stop(fields)

    running.until("listening", trickle)
    assert seen == ["cut off"]


def test_one_process_serves_a_home(party, fake):
    with served_alone(party.home.lock), pytest.raises(HomeInUse, match="serves this home already"):
        service.serve(party.home, lambda _event, **_fields: None)


def test_a_port_in_use_is_said(party, fake):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        text = party.home.settings.read_text().replace("port = 0", f"port = {port}")
        party.home.settings.write_text(text)
        with pytest.raises(SettingsError, match=rf"cannot listen at .*:{port} \(Address already in use\)"):
            service.serve(party.home, lambda _event, **_fields: None)


def test_with_a_ledger_that_was_set_back_it_does_not_serve(party, fake):
    party.ledger.decide(RUN, accept=True)
    party.turns()
    assert fake.receipts["party-1"]
    party.opened.ledger.close()
    for file in party.home.path.glob("ledger.db*"):
        file.unlink()
    running = Service(party, fake)
    with pytest.raises(RolledBack):
        service.serve(running.home, running.log, transport=fake.transport(), clock=lambda: NOW)
    assert running.logged[-1][0] == "stopped"
    assert "the ledger was set back" in running.logged[-1][1]["reason"]
    assert not fake.deliveries[1:]


def test_a_mistake_of_the_program_is_told_by_its_place_not_its_words(party, fake, monkeypatch):
    """The text of an error that nobody foresaw might quote a value of a table."""

    def broken(_answering: Any) -> Any:
        raise ZeroDivisionError("patient Quixote")

    monkeypatch.setattr("party.answering.answering.Answering.decided", broken)
    running = Service(party, fake)
    with pytest.raises(SubnError, match="a mistake in this program: ZeroDivisionError") as raised:
        service.serve(running.home, running.log, transport=fake.transport(), clock=lambda: NOW)
    (mistake,) = [fields for event, fields in running.logged if event == "mistake"]
    assert mistake["kind"] == "ZeroDivisionError"
    assert __file__ in mistake["at"][0]
    said = f"{raised.value}{raised.value.__cause__}{running.logged}{party.audited()}"
    assert "Quixote" not in said


def test_libraries_log_json_lines_too(capsys):
    root = logging.getLogger()
    before = root.handlers[:], root.level
    try:
        log_libraries()
        assert isinstance(root.handlers[0], JsonLines)
        logging.getLogger("some.library").info("not shown")
        try:
            raise ValueError("what went wrong")
        except ValueError:
            logging.getLogger("some.library").exception("failed")
    finally:
        root.handlers[:], root.level = before
    (line,) = capsys.readouterr().err.splitlines()
    found = json.loads(line)
    assert (found["event"], found["level"], found["logger"]) == ("failed", "error", "some.library")
    assert found["error"] == "ValueError"
    assert __file__ in found["at"][0]

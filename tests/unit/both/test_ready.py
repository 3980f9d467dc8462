"""`subn-curator ready` and `subn-party ready`: what a service says of itself becomes an exit code and a sentence."""

import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from curator.commands import main as service_cli
from party.commands import main as party_cli

TOML = """
[datasets.patients]
source = "patients.csv"
schema = "schema.json"
epsilon_total = "3"

[policy]
epsilon_per_run = "1"

[local]
port = {port}
"""
WELL = (200, {"status": "ready"})
CURATORS_TROUBLE = (503, {"title": "the store", "detail": "the disk is full"})
PARTYS_TROUBLE = (503, {"status": "not ready", "reason": "the disk is full"})


@contextmanager
def service(answer: tuple[int, object], certificate: Path | None = None) -> Iterator[int]:
    """Something that answers /readyz so, and its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(answer[1]).encode() if self.path == "/readyz" else b""
            self.send_response(answer[0] if self.path == "/readyz" else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign] - a handshake that is meant to fail
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def ask_curator(home: Path, port: int) -> int:
    return service_cli.main(["ready", "--home", str(home), "--json", "--port", str(port)])


def ask_party(home: Path, port: int) -> int:
    (home / "party.toml").write_text(TOML.format(port=port))
    return party_cli.main(["ready", "--home", str(home), "--json"])


def nobodys_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@pytest.mark.parametrize("ask", [ask_curator, ask_party])
def test_a_service_at_work_is_ready(tmp_path: Path, capsys: pytest.CaptureFixture[str], ask) -> None:
    with service(WELL) as port:
        assert ask(tmp_path, port) == 0
    assert json.loads(capsys.readouterr().out) == {"status": "ready"}


@pytest.mark.parametrize(("ask", "trouble"), [(ask_curator, CURATORS_TROUBLE), (ask_party, PARTYS_TROUBLE)])
def test_what_keeps_it_from_work_is_repeated(tmp_path: Path, capsys: pytest.CaptureFixture[str], ask, trouble) -> None:
    with service(trouble) as port:
        assert ask(tmp_path, port) == 1
    assert json.loads(capsys.readouterr().out) == {"status": "not ready", "reason": "the disk is full"}


@pytest.mark.parametrize("ask", [ask_curator, ask_party])
@pytest.mark.parametrize("answer", [None, (200, "no object"), (404, {})])
def test_nobody_or_somebody_else_at_the_port_is_not_ready(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ask, answer: tuple[int, object] | None
) -> None:
    if answer is None:
        assert ask(tmp_path, nobodys_port()) == 1
    else:
        with service(answer) as port:
            assert ask(tmp_path, port) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["status"] == "not ready"
    assert found["reason"]


def test_a_party_that_took_a_free_port_is_found_where_it_noted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask_party(tmp_path, 0) == 1
    capsys.readouterr()
    with service(WELL) as port:
        (tmp_path / "address").write_text(f"http://127.0.0.1:{port}\n")
        assert ask_party(tmp_path, 0) == 0
    assert json.loads(capsys.readouterr().out) == {"status": "ready"}


def test_a_curator_that_took_a_free_port_is_asked_for_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask_curator(tmp_path, 0) == 2
    assert "name the port that the service logged, with --port" in capsys.readouterr().err


def certificate(path: Path) -> Path:
    """Signed by itself, for a name that is not this machine's."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "curator.example")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, now - timedelta(hours=1), now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("curator.example")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, *form) + made.public_bytes(serialization.Encoding.PEM)
    )
    return path


def test_over_tls_exactly_the_homes_own_certificate_is_trusted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own, other = certificate(tmp_path / "tls" / "server.pem"), certificate(tmp_path / "other.pem")
    with service(WELL, own) as port:
        assert ask_curator(tmp_path, port) == 0
    with service(WELL, other) as port:
        assert ask_curator(tmp_path, port) == 1
    assert "certificate" in capsys.readouterr().out

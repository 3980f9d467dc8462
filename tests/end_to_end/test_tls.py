"""TLS between real processes: who is trusted, who is refused and why, and what a renewal in mid-run costs (nothing)."""

import json
import socket
import ssl
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest

from curator.home.certificates import Certificates
from curator.home.tls import client_context
from curator.home.x509 import SERVER_DAYS, Pair, certificates_in, key_in, new_ca, new_server_certificate, utc_now
from tests.end_to_end.cluster import Cluster, cluster, command, wait
from tests.support.tls_proxy import tls_proxy

PARTIES = ("near", "far")


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One party dials a host name, the other an IP address."""
    with cluster(tmp_path_factory.mktemp("secure") / "c") as found:
        found.add(*PARTIES)
        found.acquaint(*PARTIES)
        found.enrol("near")
        found.url = found.url.replace("127.0.0.1", "localhost")
        found.enrol("far")
        found.serve(*PARTIES)
        yield found


@pytest.fixture
def refreshed(secure: Cluster) -> Iterator[Cluster]:
    """Whatever a test does to the certificate is undone."""
    yield secure
    Certificates(secure.folder / "curator").renew(["localhost", "127.0.0.1", "::1"])
    shows(secure, "localhost")


def shown_serial(home: Cluster) -> int:
    """Of the certificate that a new connection is shown."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    address = ("127.0.0.1", int(home.url.rpartition(":")[2]))
    with socket.create_connection(address, 10) as line, context.wrap_socket(line) as secured:
        shown = ssl.DER_cert_to_PEM_cert(secured.getpeercert(binary_form=True) or b"")
    return certificates_in(shown, "shown")[0].serial_number


def shows(home: Cluster, *_names: str) -> None:
    """Until the server has taken up what lies in its home."""
    file = Certificates(home.folder / "curator").server_file
    expected = certificates_in(file.read_text(), "the file")[0].serial_number
    wait(lambda: shown_serial(home) == expected, "the renewed certificate", home.curator)


def own_ca(home: Cluster) -> Pair:
    kept = Certificates(home.folder / "curator")
    return Pair(certificates_in(kept.ca, "ca.pem")[0], key_in(kept.ca_key_file.read_text(), "ca.key"))


def put(home: Cluster, made: Pair) -> None:
    draft = home.folder / "draft.pem"
    draft.write_text(made.key_pem + made.certificate_pem)
    draft.replace(Certificates(home.folder / "curator").server_file)
    shows(home)


def refusal(home: Cluster, **environment: str) -> str:
    """What an operator is told."""
    done = command("subn", "parties", "list", env=home.operator | environment)
    assert done.returncode in (1, 2), done.stdout
    return done.stderr


def party_refusal(home: Cluster, name: str, code: int = 3) -> str:
    done = home.sites[name].shell("peers")
    assert done.returncode == code, done.stderr
    return done.stderr


# Trusted


@pytest.mark.exhaustive
def test_host_names_and_addresses_both_work(secure: Cluster) -> None:
    assert {site.cli("peers")["name"] for site in secure.sites.values()} == set(PARTIES)
    port = secure.url.rpartition(":")[2]
    for url in (f"https://localhost:{port}", f"https://127.0.0.1:{port}"):
        assert secure.subn("parties", "list").returncode == 0
        assert command("subn", "parties", "list", env=secure.operator | {"SUBN_URL": url}).returncode == 0
    secure.finished(*PARTIES)


def test_a_renewal_in_mid_run_loses_nothing_and_asks_nobody(refreshed: Cluster) -> None:
    """One party is held while the certificate changes; connections go on, new ones are shown the new certificate."""
    home, before = refreshed, shown_serial(refreshed)
    kept = httpx.Client(base_url=home.url, verify=client_context(home.ca_file.read_text()))
    assert kept.get("/healthz").status_code == 200
    noted = {name: (home.sites[name].home / "party.toml").read_bytes() for name in PARTIES}
    logged = {name: home.sites[name].running.log.read_text().count("cannot go on") for name in PARTIES}
    home.sites["far"].running.send(19)  # SIGSTOP
    run = home.begin(*PARTIES)
    wait(lambda: home.run(run)["state"] == "joining" and _answered(home, run) == ["near"], "near to join", home.curator)
    renewed = json.loads(home.curator_cli("certificate", "renew", "--json").stdout)
    assert renewed["same_ca"]
    shows(home)
    assert shown_serial(home) != before
    assert kept.get("/healthz").status_code == 200  # the connection that was there before
    kept.close()
    home.sites["far"].running.send(18)  # SIGCONT
    home.until(run, "finished")
    assert home.curator.said("took up a renewed certificate") is not None
    for name in PARTIES:
        assert (home.sites[name].home / "party.toml").read_bytes() == noted[name]
        assert home.sites[name].running.log.read_text().count("cannot go on") == logged[name]


def _answered(home: Cluster, run: str) -> list[str]:
    answered: list[str] = home.run(run)["progress"][0]["answered"]
    return answered


def test_an_idle_connection_does_not_hold_up_the_end(tmp_path: Path) -> None:
    with cluster(tmp_path / "c") as home:
        idle = httpx.Client(base_url=home.url, verify=client_context(home.ca_file.read_text()))
        idle.get("/healthz")
        started = time.monotonic()
        assert home.curator.stop() in (0, -15)
        assert time.monotonic() - started < 6  # ten, if TLS's goodbye were waited for
        idle.close()


# Refused


def test_another_ca_is_refused_by_party_and_operator(secure: Cluster, tmp_path: Path) -> None:
    other = tmp_path / "other.pem"
    other.write_text(new_ca(utc_now()).certificate_pem)
    assert "not issued by the CA that is pinned here" in refusal(secure, SUBN_CA_FILE=str(other))
    assert "SUBN_CA_FILE" in refusal(secure, SUBN_CA_FILE="")
    pinned = secure.sites["near"].home / "ca.pem"
    right = pinned.read_text()
    pinned.write_text(other.read_text())
    try:
        complaint = party_refusal(secure, "near")
    finally:
        pinned.write_text(right)
    assert "nothing was sent" in complaint
    assert "subn-party recognise PIN" in complaint
    assert secure.sites["near"].cli("peers")["name"] == "near"


def test_a_certificate_for_another_name_is_refused(refreshed: Cluster) -> None:
    put(refreshed, new_server_certificate(own_ca(refreshed), ["localhost", "10.9.8.7"], utc_now()))
    assert "certificate renew --name" in party_refusal(refreshed, "near")  # it dials 127.0.0.1
    assert refreshed.sites["far"].cli("peers")["name"] == "far"
    put(refreshed, new_server_certificate(own_ca(refreshed), ["127.0.0.1"], utc_now()))
    assert "its certificate is for other names" in party_refusal(refreshed, "far")
    assert "its certificate is for other names" in refusal(refreshed)


@pytest.mark.exhaustive
def test_an_expired_certificate_is_refused_until_it_is_renewed(refreshed: Cluster) -> None:
    old = utc_now() - timedelta(days=SERVER_DAYS + 2)
    put(refreshed, new_server_certificate(own_ca(refreshed), ["localhost", "127.0.0.1"], old))
    assert "has expired" in refusal(refreshed)
    assert "subn-curator certificate renew" in party_refusal(refreshed, "near")
    refreshed.curator_cli("certificate", "renew")
    shows(refreshed)
    assert refreshed.sites["near"].cli("peers")["name"] == "near"


def test_nobody_is_talked_down_to_http(secure: Cluster, tmp_path: Path) -> None:
    plain = secure.url.replace("https://", "http://")
    assert "if it expects TLS, use https://" in refusal(secure, SUBN_URL=plain)
    assert "use https://" in refusal(secure, SUBN_URL="http://curator.example:8460")
    trusting = client_context(secure.ca_file.read_text())
    with tls_proxy(secure.url, None, trusting=trusting) as port:  # somebody in between who takes TLS away
        assert "does not speak TLS" in refusal(secure, SUBN_URL=f"https://127.0.0.1:{port}")
    toml = secure.sites["near"].home / "party.toml"
    right = toml.read_text()
    toml.write_text(right.replace("https://127.0.0.1", "http://10.0.0.1"))
    try:
        assert "go over the network unencrypted" in party_refusal(secure, "near", 2)
    finally:
        toml.write_text(right)


@pytest.mark.exhaustive
def test_plain_http_stays_on_this_machine(tmp_path: Path) -> None:
    home = tmp_path / "curator"
    assert command("subn-curator", "init", "--home", home).returncode == 0
    for host in ("0.0.0.0", "10.0.0.1", "::"):
        done = command("subn-curator", "serve", "--home", home, "--plain-http", "--host", host)
        assert done.returncode == 2
        assert "unencrypted" in done.stderr
        assert "--behind-proxy" in done.stderr
    done = command("subn-curator", "serve", "--home", home, env={"SUBN_CURATOR_BEHIND_PROXY": "no address"})
    assert done.returncode == 2
    assert "SUBN_CURATOR_BEHIND_PROXY" in done.stderr


def test_a_revoked_party_is_told_so(secure: Cluster) -> None:
    secure.add("leaver")
    secure.enrol("leaver")
    assert secure.subn("parties", "revoke", "leaver").returncode == 0
    complaint = party_refusal(secure, "leaver")
    assert "leaver was revoked by the operator" in complaint


def test_somebody_in_between_cannot_put_his_own_ca_into_an_enrolment(secure: Cluster, tmp_path: Path) -> None:
    """He has a certificate for the name, of a CA of his own, and passes everything on but the introduction."""
    forged, seen = new_ca(utc_now()), list[str]()
    own = new_server_certificate(forged, ["127.0.0.1"], utc_now())
    (tmp_path / "own.pem").write_text(own.key_pem + own.certificate_pem)

    def spoil(path: str, body: bytes) -> bytes:
        seen.append(path)
        if path == "/v1/introduction":
            return json.dumps(json.loads(body) | {"ca": forged.certificate_pem}).encode()
        return body

    secure.add("careful")
    site, code = secure.sites["careful"], secure.code("careful")
    trusting = client_context(secure.ca_file.read_text())
    with tls_proxy(secure.url, tmp_path / "own.pem", trusting=trusting, spoil=spoil) as port:
        done = site.shell("enrol", "--curator", f"https://127.0.0.1:{port}", "--name", "careful", "--code", code)
    assert done.returncode == 3
    assert "is not the curator that your code was made by" in done.stderr
    assert seen == ["/v1/introduction"]  # the secret half of the code has not left
    assert not (site.home / "ca.pem").exists()
    secure.enrol("careful")  # with the curator itself


# A proxy in front


@pytest.mark.exhaustive
def test_a_proxy_that_terminates_tls_may_stand_in_front(tmp_path: Path) -> None:
    with cluster(tmp_path / "c", env={"SUBN_CURATOR_BEHIND_PROXY": "127.0.0.1"}) as home:
        plain, own = home.url, Certificates(tmp_path / "c" / "curator")
        assert plain.startswith("http://")
        direct = httpx.get(f"{plain}/v1/introduction")
        assert direct.status_code == 403
        assert "through its proxy" in direct.json()["detail"]
        assert httpx.get(f"{plain}/healthz").status_code == 200  # health checks on this machine
        assert "Subn-Curator-Signature" not in direct.headers
        with tls_proxy(plain, own.server_file, adding={"X-Forwarded-Proto": "https"}) as port:
            home.url = f"https://127.0.0.1:{port}"
            home.hang_up()
            secure, headers = client_context(own.ca), {"Authorization": f"Bearer {home.key}"}
            home.http = httpx.Client(base_url=home.url, headers=headers, timeout=60, verify=secure)
            home.add(*PARTIES)
            home.acquaint(*PARTIES)
            home.enrol(*PARTIES)
            home.serve(*PARTIES)
            home.finished(*PARTIES)
            assert home.subn("parties", "list").returncode == 0
            for site in home.sites.values():
                site.running.stop()


def test_from_elsewhere_than_the_proxy_nobody_is_answered(tmp_path: Path) -> None:
    with cluster(tmp_path / "c", env={"SUBN_CURATOR_BEHIND_PROXY": "10.20.0.0/16, fd00::/8"}) as home:
        said = httpx.get(f"{home.url}/v1/introduction", headers={"X-Forwarded-Proto": "https"})
        assert said.status_code == 403


def test_tls_is_fast_enough(secure: Cluster) -> None:
    """A connection is kept: of many requests only the first pays for a handshake."""
    counted = 0
    listener = socket.create_server(("127.0.0.1", 0))
    there = ("127.0.0.1", int(secure.url.rpartition(":")[2]))

    def carry(source: Any, sink: Any) -> None:
        with source, sink:
            while data := source.recv(1 << 16):
                sink.sendall(data)

    def take() -> None:
        nonlocal counted
        while True:
            try:
                line, _ = listener.accept()
            except OSError:
                return
            counted += 1
            far = socket.create_connection(there)
            for pair in ((line, far), (far, line)):
                Thread(target=_quietly, args=(carry, *pair), daemon=True).start()

    taking = Thread(target=take)
    taking.start()
    url = f"https://127.0.0.1:{listener.getsockname()[1]}"
    with httpx.Client(base_url=url, verify=client_context(secure.ca_file.read_text())) as line:
        assert all(line.get("/healthz").status_code == 200 for _ in range(50))
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    taking.join()
    assert counted == 1


def _quietly(carry: Any, *pair: Any) -> None:
    try:
        carry(*pair)
    except OSError:
        return

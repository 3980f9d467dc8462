"""The curator's certificates: made, taken over, renewed under the same CA, refused where parties would refuse them."""

import ssl
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from curator.errors import SettingsError
from curator.home.certificates import RENEW_DAYS, Certificates, default_names
from curator.home.tls import client_context, server_context, try_handshake
from curator.home.x509 import (
    CA_DAYS,
    SERVER_DAYS,
    Pair,
    general_name,
    names_of,
    new_ca,
    new_server_certificate,
    utc_now,
)
from curator.server import secure_line
from curator.settings import Settings

NOW = datetime(2026, 3, 1, tzinfo=UTC)
NAMES = ["localhost", "curator.example", "127.0.0.1", "::1"]


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    made = Certificates(tmp_path)
    made.make(NAMES)
    return made


def verdict(certificates: Certificates, name: str, ca: str | None = None) -> int:
    """OpenSSL's number of what a party that dials this name finds wrong; 0 for nothing."""
    client = client_context(certificates.ca if ca is None else ca)
    try:
        try_handshake(certificates.context(), client, name)
    except ssl.SSLCertVerificationError as error:
        return error.verify_code
    return 0


# Made here


def test_a_certificate_is_good_for_its_host_names_and_addresses_and_no_others(certificates: Certificates) -> None:
    assert [verdict(certificates, name) for name in NAMES] == [0, 0, 0, 0]
    assert verdict(certificates, "other.example") == 62
    assert verdict(certificates, "127.0.0.2") == 64
    assert certificates.shown().names == NAMES
    certificates.try_names()


def test_nobody_trusts_it_without_the_ca(certificates: Certificates) -> None:
    assert verdict(certificates, "localhost", new_ca(utc_now()).certificate_pem) == 20
    assert verdict(certificates, "localhost", "") in (19, 20)  # what the machine trusts is not enough


def test_secrets_are_for_the_owner_alone_and_the_ca_for_everybody(certificates: Certificates) -> None:
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in certificates.folder.iterdir()}
    assert modes["ca.key"] == modes["server.pem"] == 0o600
    assert modes["ca.pem"] & 0o444
    assert stat.S_IMODE(certificates.folder.stat().st_mode) == 0o700
    assert "PRIVATE" not in certificates.ca


def test_the_ca_stays_when_the_certificate_is_renewed(certificates: Certificates) -> None:
    ca, former = certificates.ca, certificates.server_file.read_text()
    certificates.renew()
    assert certificates.ca == ca
    assert certificates.server_file.read_text() != former
    assert certificates.shown().names == NAMES
    certificates.renew(["10.1.2.3", "elsewhere.example"])
    assert certificates.ca == ca
    assert [verdict(certificates, name) for name in ("10.1.2.3", "elsewhere.example", "localhost")] == [0, 0, 62]
    certificates.make(NAMES)
    assert certificates.ca == ca


def test_it_is_renewed_without_help_when_its_end_is_near(certificates: Certificates) -> None:
    ca, now = certificates.ca, utc_now()
    assert not certificates.renew_if_due(now + timedelta(days=SERVER_DAYS - RENEW_DAYS - 2))
    late = now + timedelta(days=SERVER_DAYS - RENEW_DAYS + 1)
    assert certificates.renew_if_due(late)
    assert not certificates.renew_if_due(late)
    assert certificates.ca == ca
    assert certificates.shown(late).days in (SERVER_DAYS - 1, SERVER_DAYS)


def test_without_the_cas_key_nothing_is_renewed_and_what_to_do_is_said(certificates: Certificates) -> None:
    key = certificates.ca_key_file.read_text()
    certificates.ca_key_file.unlink()
    assert not certificates.renew_if_due(utc_now() + timedelta(days=SERVER_DAYS))
    with pytest.raises(SettingsError, match="put it back to renew"):
        certificates.renew()
    certificates.ca_key_file.write_text(Pair(*_ca()).key_pem)  # of another CA
    with pytest.raises(SettingsError, match="put it back to renew"):
        certificates.renew()
    certificates.ca_key_file.write_text(key)
    certificates.renew()


def test_how_long_things_last(certificates: Certificates) -> None:
    shown = certificates.shown()
    assert (shown.days, shown.renews_itself) == (SERVER_DAYS - 1, True)
    assert shown.ca_days is not None
    assert CA_DAYS - 2 <= shown.ca_days <= CA_DAYS
    assert certificates.shown(utc_now() + timedelta(days=SERVER_DAYS + 2)).days < 0


def test_an_expired_certificate_is_refused_by_parties(certificates: Certificates) -> None:
    ca = Pair(*_ca())
    old = new_server_certificate(ca, NAMES, NOW - timedelta(days=SERVER_DAYS + 3))
    certificates.server_file.write_text(old.key_pem + old.certificate_pem)
    assert verdict(certificates, "localhost", ca.certificate_pem) == 10
    unborn = new_server_certificate(ca, NAMES, utc_now() + timedelta(days=3))
    certificates.server_file.write_text(unborn.key_pem + unborn.certificate_pem)
    assert verdict(certificates, "localhost", ca.certificate_pem) == 9


@pytest.mark.parametrize("name", ["", "a b", "höst", "-x.example", "x..y", "a" * 64, "x_y!", "300.1.1.1:80", "*."])
def test_what_is_no_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(SettingsError, match="is neither a host name nor an IP address"):
        Certificates(tmp_path).make(["localhost", name])
    assert not (tmp_path / "tls").exists()


@pytest.mark.parametrize("name", ["localhost", "10.0.0.1", "fe80::1", "*.example.org", "Curator.Example", "x_y"])
def test_what_is_a_name_is_taken(name: str) -> None:
    made = new_server_certificate(Pair(*_ca()), [name], NOW)
    assert names_of(made.certificate) == [name.lower()]
    assert general_name(name)


def test_the_names_without_wishes_are_those_of_this_machine() -> None:
    assert default_names()[:3] == ["localhost", "127.0.0.1", "::1"]


def test_only_tls_1_2_and_newer_is_spoken(certificates: Certificates) -> None:
    old = client_context(certificates.ca)
    old.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    with pytest.raises(ssl.SSLError, match="PROTOCOL"):
        try_handshake(certificates.context(), old, "localhost")
    old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2
    try_handshake(certificates.context(), old, "localhost")
    assert server_context(certificates.server_file).minimum_version is ssl.TLSVersion.TLSv1_2


# The organisation's own


def _ca(issuer: Pair | None = None, name: str = "Organisation") -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    """A CA, or an intermediate one under `issuer`."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    above = subject if issuer is None else issuer.certificate.subject
    signer = key if issuer is None else issuer.key
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    built = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(above)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW - timedelta(days=4000))
        .not_valid_after(NOW + timedelta(days=4000))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    return built.sign(signer, hashes.SHA256()), key


def files(folder: Path, made: Pair, *chain: Pair) -> tuple[Path, Path]:
    certificate, key = folder / "own.pem", folder / "own.key"
    certificate.write_text("".join(one.certificate_pem for one in (made, *chain)))
    key.write_text(made.key_pem)
    return certificate, key


def test_an_own_certificate_under_an_intermediate_ca_is_taken_and_renewed(tmp_path: Path) -> None:
    root = Pair(*_ca())
    middle = Pair(*_ca(root, "Department"))
    (tmp_path / "root.pem").write_text(root.certificate_pem)
    taken = Certificates(tmp_path / "home")
    made = new_server_certificate(middle, ["curator.example"], utc_now())
    taken.install(*files(tmp_path, made, middle), ca=str(tmp_path / "root.pem"))
    assert taken.ca == root.certificate_pem
    assert verdict(taken, "curator.example") == 0
    shown = taken.shown()
    assert (shown.names, shown.renews_itself) == (["curator.example"], False)
    later = new_server_certificate(middle, ["curator.example", "192.0.2.7"], utc_now())
    taken.install(*files(tmp_path, later, middle), ca=None)
    assert verdict(taken, "192.0.2.7") == 0
    assert taken.ca == root.certificate_pem
    assert sorted(file.name for file in taken.folder.iterdir()) == ["ca.pem", "server.pem"]


def test_an_own_certificate_takes_the_place_of_the_first_ca(certificates: Certificates, tmp_path: Path) -> None:
    root = Pair(*_ca())
    (tmp_path / "root.pem").write_text(root.certificate_pem)
    own = files(tmp_path, new_server_certificate(root, ["curator.example"], utc_now()))
    with pytest.raises(SettingsError, match="--ca-file"):
        certificates.install(*own, ca=None)  # parties that have enrolled know the first one only
    assert verdict(certificates, "localhost") == 0
    certificates.install(*own, ca=str(tmp_path / "root.pem"))
    assert verdict(certificates, "curator.example") == 0
    assert not certificates.shown().renews_itself  # the first CA's key is of no use any more


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("chain", "Put the chain up to the CA in --ca-file into it"),
        ("system", "a CA that this machine trusts"),
        ("key", "is not the key of"),
        ("expired", "expired on"),
        ("nameless", "names no host"),
        ("no certificate", "holds no certificate in PEM form"),
        ("no key", "holds no private key in PEM form"),
        ("binary", "is not in PEM form"),
    ],
)
def test_what_parties_would_refuse_is_not_taken(tmp_path: Path, what: str, why: str) -> None:
    root = Pair(*_ca())
    middle = Pair(*_ca(root, "Department"))
    (tmp_path / "root.pem").write_text(root.certificate_pem)
    start = utc_now() - timedelta(days=SERVER_DAYS + 9 if what == "expired" else 0)
    made = middle if what == "nameless" else new_server_certificate(middle, ["curator.example"], start)
    certificate, key = files(tmp_path, made, *([] if what == "chain" else [middle]))
    if what == "key":
        key.write_text(root.key_pem)
    if what in ("no certificate", "no key"):
        (certificate if what == "no certificate" else key).write_text("hello")
    if what == "binary":
        certificate.write_bytes(b"\x30\x82\xff")
    home = Certificates(tmp_path / "home")
    with pytest.raises(SettingsError, match=why):
        home.install(certificate, key, ca="system" if what == "system" else str(tmp_path / "root.pem"))
    assert not home.server_file.exists()
    assert not home.ca_file.exists()


def test_a_home_without_certificates_says_how_to_make_them(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="certificate renew --name HOST"):
        Certificates(tmp_path).context()


# Names that the settings list


def test_names_that_are_added_to_the_settings_get_into_the_certificate(tmp_path: Path) -> None:
    """They were read at the first start alone, and ignored without a word afterwards."""
    made = Certificates(tmp_path)
    made.make(["localhost"])
    pinned = made.ca
    wanted = ["Curator.Example", "192.0.2.7", "2001:DB8::7", "localhost"]
    assert secure_line(Settings(home=tmp_path, names=", ".join(wanted))).context is not None
    assert [verdict(made, name) for name in ("curator.example", "192.0.2.7", "2001:db8::7", "localhost")] == [0] * 4
    assert made.ca == pinned
    before = made.server_file.read_bytes()
    secure_line(Settings(home=tmp_path, names="localhost, curator.example"))
    assert made.server_file.read_bytes() == before


def test_an_organisations_certificate_is_left_and_what_to_do_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made, ca = Certificates(tmp_path), new_ca(utc_now())
    own = new_server_certificate(ca, ["*.hospital.example"], utc_now())
    for name, text in (("cert.pem", own.certificate_pem), ("key.pem", own.key_pem), ("ca.pem", ca.certificate_pem)):
        (tmp_path / name).write_text(text)
    made.install(tmp_path / "cert.pem", tmp_path / "key.pem", str(tmp_path / "ca.pem"))
    before = made.server_file.read_bytes()
    assert made.lacking(["curator.hospital.example"]) == []
    secure_line(Settings(home=tmp_path, names="curator.hospital.example,other.example"))
    assert made.server_file.read_bytes() == before
    (record,) = caplog.records
    assert record.exc_info is not None
    assert "not good for other.example; it was not made here: have one" in str(record.exc_info[1])

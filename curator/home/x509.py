"""X.509 certificates: the curator's own CA, the server's certificate under it, and reading certificates.

It does not know files or connections.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from curator.errors import SettingsError

CA_DAYS = 20 * 365
SERVER_DAYS = 397  # browsers refuse certificates with a longer life
_BEFORE = timedelta(days=1)  # tolerates clocks that are behind
_LONGEST_COMMON_NAME = 64


@dataclass(frozen=True)
class Pair:
    """A certificate and its key."""

    certificate: x509.Certificate
    key: CertificateIssuerPrivateKeyTypes

    @property
    def certificate_pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    @property
    def key_pem(self) -> str:
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def new_ca(now: datetime) -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    # The serial number in the name distinguishes two CAs on a machine that knows both.
    serial = x509.random_serial_number()
    name = _named(f"dp-subn curator CA {serial:040x}"[:_LONGEST_COMMON_NAME])
    builder = _built(name, name, key.public_key(), key.public_key(), now, CA_DAYS).serial_number(serial)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage(signs_certificates=True), critical=True)
    return Pair(builder.sign(key, hashes.SHA256()), key)


def new_server_certificate(ca: Pair, names: Sequence[str], now: datetime) -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _named(names[0][:_LONGEST_COMMON_NAME])
    builder = _built(subject, ca.certificate.subject, key.public_key(), ca.certificate.public_key(), now, SERVER_DAYS)
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_usage(signs_certificates=False), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    builder = builder.add_extension(x509.SubjectAlternativeName([general_name(n) for n in names]), critical=False)
    return Pair(builder.sign(ca.key, hashes.SHA256()), key)


def general_name(name: str) -> x509.GeneralName:
    """Return an IP address or a host name in the form that certificates use."""
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        pass
    labels = name.removeprefix("*.").split(".")
    if len(name) > 253 or not all(_is_label(label) for label in labels):
        raise SettingsError(
            f"{name!r} is neither a host name nor an IP address: use letters, digits and hyphens, with points between "
            "the parts (international names in their xn-- spelling)"
        )
    return x509.DNSName(name.lower())


def names_of(certificate: x509.Certificate) -> list[str]:
    """Return the host names and IP addresses for which a certificate is valid."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    return [*found.get_values_for_type(x509.DNSName), *map(str, found.get_values_for_type(x509.IPAddress))]


def days_left(certificate: x509.Certificate, now: datetime) -> int:
    """Return the whole days until the certificate expires, negative afterwards."""
    return (certificate.not_valid_after_utc - now) // timedelta(days=1)


def certificates_in(pem: str, where: str) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(pem.encode())
    except ValueError:
        raise SettingsError(f"{where} holds no certificate in PEM form (-----BEGIN CERTIFICATE-----)") from None


def key_in(pem: str, where: str) -> CertificateIssuerPrivateKeyTypes:
    try:
        key = load_pem_private_key(pem.encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise SettingsError(f"{where} holds no private key in PEM form without a password, of a known kind") from None
    return key  # type: ignore[return-value]


def utc_now() -> datetime:
    return datetime.now(UTC)


def _is_label(label: str) -> bool:
    plain = label.replace("-", "").replace("_", "")
    return 0 < len(label) <= 63 and plain.isascii() and plain.isalnum() and not label.startswith("-")


def _named(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _built(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    issuer_key: object,
    now: datetime,
    days: int,
) -> x509.CertificateBuilder:
    start = now.replace(microsecond=0)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .not_valid_before(start - _BEFORE)
        .not_valid_after(start + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key), critical=False)  # type: ignore[arg-type]
    )


def _usage(signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )

"""The pin in an enrolment code, the addresses that may be dialled, and the words for a connection that is refused."""

import ssl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import OperatorError
from protocol.messages.pins import PIN_DIGITS, checked_pin, joined, parted, pin_of
from protocol.services.connection import check_address, distrust, hung_up, is_loopback

KEY, CA = b"\x01" * 32, "-----BEGIN CERTIFICATE-----\n"


def test_the_pin_is_what_it_was_when_it_was_first_handed_out() -> None:
    assert pin_of(KEY, CA) == "8c77e3650d4d78005b97ef54fd9a8356"
    assert pin_of(KEY, "") == "989da3f295318f3a1a53df8d72a4a5a7"


@given(st.binary(max_size=40), st.text(max_size=40), st.binary(max_size=40), st.text(max_size=40))
def test_another_key_or_ca_has_another_pin(key: bytes, ca: str, other_key: bytes, other_ca: str) -> None:
    assert (pin_of(key, ca) == pin_of(other_key, other_ca)) == ((key, ca) == (other_key, other_ca))


@given(st.text("0123456789abcdef", min_size=1, max_size=60), st.binary(min_size=1))
def test_a_code_comes_apart_as_it_was_put_together(secret: str, key: bytes) -> None:
    pin = pin_of(key, CA)
    assert len(pin) == PIN_DIGITS
    assert parted(f" {joined(secret, pin)}\n") == (secret, pin)


def test_people_may_group_and_shout_a_pin() -> None:
    pin = pin_of(KEY, CA)
    assert checked_pin(f"{pin[:8].upper()} {pin[8:20]}-{pin[20:]}") == pin


def refusal(url: str) -> str:
    """Why this address may not be dialled; empty if it may."""
    try:
        check_address(url)
    except OperatorError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    "url", ["https://curator", "https://10.0.0.1:8460", "https://[::1]:8460/", "https://x/curator"]
)
def test_https_goes_anywhere(url: str) -> None:
    assert refusal(url) == ""


@pytest.mark.parametrize("url", ["http://127.0.0.1:8460", "http://localhost", "http://[::1]:1", "http://127.8.9.1"])
def test_http_stays_on_this_machine(url: str) -> None:
    assert refusal(url) == ""


@pytest.mark.parametrize(
    "url", ["http://curator", "http://10.0.0.1:8460", "http://[fe80::1]", "http://localhost.example"]
)
def test_http_over_the_network_is_refused_with_what_to_do(url: str) -> None:
    assert "use https://" in refusal(url)


@pytest.mark.parametrize(
    "url", ["curator", "ftp://curator", "https://", "https://a b", "https://user@host", "https://h:port", "https://h?q"]
)
def test_what_is_no_address_is_refused(url: str) -> None:
    assert "is not the address of a curator" in refusal(url)


def test_only_a_spelt_out_loopback_is_one() -> None:
    assert [is_loopback(host) for host in ("localhost", "127.0.0.1", "::1", "[::1]")] == [True] * 4
    assert [is_loopback(host) for host in ("0.0.0.0", "curator", "10.0.0.1", "")] == [False] * 4


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (20, "subn-party recognise PIN"),
        (19, "SUBN_CA_FILE"),
        (62, "certificate renew --name"),
        (64, "certificate renew --name"),
        (10, "has expired"),
        (9, "set this machine's clock"),
        (26, "unsuitable; ask the curator's operator"),
    ],
)
def test_a_certificate_that_fails_is_explained(code: int, words: str) -> None:
    error = ssl.SSLCertVerificationError()
    error.verify_code, error.verify_message = code, "unsuitable"
    outer = OSError("connection failed")
    outer.__cause__ = error
    found = distrust("https://curator.example", outer)
    assert found is not None
    assert found.startswith("https://curator.example is not trusted, and nothing was sent: ")
    assert words in found


def test_a_line_without_tls_is_explained_and_other_troubles_are_left_alone() -> None:
    error = ssl.SSLError(1, "wrong version number")
    error.reason = "WRONG_VERSION_NUMBER"
    assert "does not speak TLS" in str(distrust("https://x", error))
    assert distrust("https://x", OSError("refused")) is None
    assert "use https://" in hung_up("http://127.0.0.1:8460")
    assert hung_up("https://x") == ""

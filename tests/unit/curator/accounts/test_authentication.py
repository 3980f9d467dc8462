"""Who sends a request: signatures, clocks, nonces that serve once, operators' keys."""

from dataclasses import replace

import pytest
from sqlalchemy import func, select

from crypto.randomness import Stream
from crypto.signing import sign
from curator.accounts.authentication import Authentication, SignedRequest
from curator.accounts.registry import Registry
from curator.errors import Forbidden, NotAuthenticated, Replayed, WrongClock
from curator.store.store import Store
from curator.store.tables import nonces
from protocol.exact import digest
from protocol.messages.signatures import LARGEST_CLOCK_DIFFERENCE_MS, REQUEST, request_text
from tests.support.curator import START, Clock
from tests.support.small_runs import identity

STREAM = Stream.keyed(b"test", "authentication")
NONCE = "0123456789abcdef"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def registry(tmp_path, clock):
    store = Store.open(f"sqlite:///{tmp_path / 'curator.db'}")
    registry = Registry(store, clock)
    code, _ = registry.new_code("clinic", STREAM)
    registry.enrol(code, "clinic", identity(0).signing.public, identity(0).exchange.public)
    yield registry
    store.close()


@pytest.fixture
def gate(registry, clock) -> Authentication:
    return Authentication(registry.store, clock)


def party(gate: Authentication, request: SignedRequest) -> str:
    sender = gate.sender(request)
    gate.admit(sender, request)
    return sender.name


def signed(nonce: str = NONCE, time_ms: int = START, sender: str = "clinic", key: int = 0) -> SignedRequest:
    text = request_text("PUT", "/v1/offers/x?y=z", digest(b"body"), sender, time_ms, nonce)
    signature = sign(identity(key).signing, REQUEST, text).hex()
    return SignedRequest("PUT", "/v1/offers/x?y=z", digest(b"body"), sender, str(time_ms), nonce, signature)


def test_a_signed_request_is_its_senders(gate, registry, clock):
    clock.advance(7)
    assert party(gate, signed()) == "clinic"
    assert registry.parties()[0].last_seen == START + 7000


@pytest.mark.parametrize(
    "change",
    [
        {"method": "POST"},
        {"target": "/v1/offers/x"},
        {"body_digest": digest(b"other")},
        {"body_digest": "no digest"},
        {"time_ms": str(START + 1)},
        {"nonce": NONCE + "0"},
        {"signature": "00" * 64},
        {"signature": "no hexadecimal digits"},
        {"signature": ""},
    ],
)
def test_what_was_changed_on_the_way_is_refused(gate, change):
    with pytest.raises(NotAuthenticated, match="not signed with the key of 'clinic'"):
        party(gate, replace(signed(), **change))


def test_another_partys_key_does_not_sign(gate):
    with pytest.raises(NotAuthenticated, match="not signed with the key of 'clinic'"):
        party(gate, signed(key=1))
    with pytest.raises(NotAuthenticated, match="no party 'nobody' is enrolled here"):
        party(gate, signed(sender="nobody"))


@pytest.mark.parametrize("change", [{"time_ms": "now"}, {"time_ms": "9" * 16}, {"nonce": "short"}, {"nonce": "ä" * 20}])
def test_what_cannot_be_read_is_refused(gate, change):
    with pytest.raises(NotAuthenticated, match="must be milliseconds since 1970 and its nonce 16 to 64 letters"):
        party(gate, replace(signed(), **change))


@pytest.mark.parametrize("sign_of", [1, -1])
def test_clocks_may_differ_by_five_minutes(gate, clock, sign_of):
    off = START + sign_of * LARGEST_CLOCK_DIFFERENCE_MS
    assert party(gate, signed(time_ms=off)) == "clinic"
    with pytest.raises(WrongClock, match="may differ by 5 minutes"):
        party(gate, signed(nonce="f" * 16, time_ms=off + sign_of))


def test_a_wrong_clock_is_told_both_clocks(gate):
    with pytest.raises(WrongClock) as error:
        party(gate, signed(time_ms=START - 3_600_000))
    assert "your clock says 2027-01-15 07:00:00 UTC, the curator's says 2027-01-15 08:00:00 UTC" in str(error.value)
    with pytest.raises(WrongClock, match="your clock says 999999999999999 ms after 1970"):
        party(gate, signed(time_ms=999_999_999_999_999))


def test_a_nonce_serves_once_even_after_a_restart(gate, clock, tmp_path):
    party(gate, signed())
    with pytest.raises(Replayed, match="has already been received"):
        party(gate, signed())
    restarted = Store.open(f"sqlite:///{tmp_path / 'curator.db'}")
    with pytest.raises(Replayed):
        party(Authentication(restarted, clock), signed())
    restarted.close()


def test_at_no_time_does_a_nonce_serve_twice(gate, clock):
    """Signed by a clock that is as fast as it may be, and sent again every minute until its time is over."""
    request = signed(time_ms=START + LARGEST_CLOCK_DIFFERENCE_MS)
    party(gate, request)
    for minute in range(1, 16):
        clock.advance(60)
        party(gate, signed(nonce=f"{minute:016d}", time_ms=clock.now))  # others' requests clear old nonces away
        with pytest.raises(Replayed if minute <= 10 else WrongClock):
            party(gate, request)


def test_old_nonces_are_cleared_away(gate, clock, registry):
    for number in range(5):
        party(gate, signed(nonce=f"{number:016d}"))
    clock.advance(601)
    party(gate, signed(nonce="f" * 16, time_ms=clock.now))
    with registry.store.reading() as db:
        assert db.execute(select(func.count()).select_from(nonces)).scalar_one() == 1


def test_forged_requests_use_no_nonce(gate):
    with pytest.raises(NotAuthenticated):
        party(gate, signed(key=1))
    assert party(gate, signed()) == "clinic"


def test_a_revoked_party_is_told_so(gate, registry):
    registry.revoke("clinic")
    with pytest.raises(Forbidden, match="clinic was revoked by the operator"):
        party(gate, signed())


def test_only_times_that_cannot_be_repetitions_say_something_of_the_clock(gate, registry, clock):
    heard: list[int] = []
    gate = replace(gate, heard=lambda _party, time_ms: heard.append(time_ms))
    kept = signed()
    party(gate, kept)
    with pytest.raises(Replayed):
        party(gate, kept)
    clock.advance(3600)
    with pytest.raises(WrongClock):
        party(gate, kept)  # its nonce has been forgotten
    with pytest.raises(WrongClock):
        party(gate, signed(nonce="a" * 16, time_ms=START + LARGEST_CLOCK_DIFFERENCE_MS))
    assert heard == [START]
    newer = START + LARGEST_CLOCK_DIFFERENCE_MS + 1
    with pytest.raises(WrongClock):
        party(gate, signed(nonce="b" * 16, time_ms=newer))
    assert heard == [START, newer]
    registry.revoke("clinic")
    for number, time_ms in enumerate((clock.now, clock.now + 3_600_000)):
        with pytest.raises(Forbidden):
            party(gate, signed(nonce=f"{number:016d}", time_ms=time_ms))
    assert heard == [START, newer]


def test_a_rotated_key_takes_the_place_of_the_old_one(gate, registry):
    registry.rotate("clinic", identity(1).signing.public, identity(1).exchange.public)
    assert party(gate, signed(key=1)) == "clinic"
    with pytest.raises(NotAuthenticated):
        party(gate, signed(key=0))


def test_a_newcomer_holds_the_key_that_it_brings(gate):
    request = signed(sender="new", key=1)
    gate.newcomer(request, identity(1).signing.public)
    for key in (identity(0).signing.public, b"short"):
        with pytest.raises(NotAuthenticated, match="not signed with the key of 'new'"):
            gate.newcomer(request, key)


def test_operators_are_known_by_their_keys(gate, registry):
    key = registry.new_operator_key("anna", STREAM)
    assert gate.operator(key) == "anna"
    for wrong in ("", key[:-1], key.upper() + "0"):
        with pytest.raises(NotAuthenticated, match="operator's key is not valid"):
            gate.operator(wrong)

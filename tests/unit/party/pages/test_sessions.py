"""Who may see the pages: tickets serve once and for ten minutes, sessions for hours, and nothing is guessed."""

import pytest

from crypto.randomness import Stream
from party.home.page_address import name_in
from party.pages.sessions import SESSION_SECONDS, TICKET_SECONDS, Door


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def door(clock: Clock) -> Door:
    return Door(Stream.keyed(b"door"), clock)


def test_a_ticket_opens_one_session_once(door: Door) -> None:
    ticket = door.ticket()
    secret = door.enter(ticket)
    assert secret is not None
    assert secret != ticket
    assert door.session(secret) is not None
    assert door.enter(ticket) is None


@pytest.mark.parametrize("wrong", ["", "0" * 64, "é", "\ud800"])
def test_nobody_gets_in_with_what_was_never_given_out(door: Door, wrong: str) -> None:
    door.ticket()
    assert door.enter(wrong) is None
    assert door.session(wrong) is None
    assert door.session(None) is None


def test_a_ticket_grows_old(door: Door, clock: Clock) -> None:
    ticket = door.ticket()
    clock.now += TICKET_SECONDS
    assert door.enter(ticket) is None


def test_a_session_ends_by_itself_and_by_leaving(door: Door, clock: Clock) -> None:
    first, second = door.enter(door.ticket()), door.enter(door.ticket())
    door.leave(first)
    assert door.session(first) is None
    assert door.session(second) is not None
    clock.now += SESSION_SECONDS
    assert door.session(second) is None


def test_form_tokens_differ_between_sessions_and_do_not_print(door: Door) -> None:
    found = [door.session(door.enter(door.ticket())) for _ in range(2)]
    assert all(found)
    assert len({one.form_token for one in found if one}) == 2
    assert all(one.form_token not in repr(one) for one in found if one)


def test_only_so_many_tickets_and_sessions_are_remembered(door: Door) -> None:
    tickets = [door.ticket() for _ in range(50)]
    assert door.enter(tickets[0]) is None
    assert door.enter(tickets[-1]) is not None
    sessions = [door.enter(door.ticket()) for _ in range(50)]
    assert door.session(sessions[0]) is None
    assert door.session(sessions[-1]) is not None


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("127.0.0.1:8470", "127.0.0.1"),
        ("LOCALHOST", "localhost"),
        ("[::1]:80", "[::1]"),
        ("[::1]", "[::1]"),
        ("a.b:", "a.b:"),
    ],
)
def test_the_name_in_a_host_header(host: str, name: str) -> None:
    assert name_in(host) == name

"""A network that cuts, delays, refuses, repeats and forges: parties try again with patience, say so, and go on."""

import time
from hashlib import sha256
from threading import Lock

import pytest

from tests.faults.processes import CURATOR
from tests.faults.proxy import Lost
from tests.support.effort import mostly_exhaustive

PARTIES = ["party-1", "party-2"]


class Some:
    """The first `count` exchanges of a kind."""

    def __init__(self, count, kind):
        self.left, self.kind, self._lock = count, kind, Lock()

    def __call__(self, exchange):
        with self._lock:
            if self.left and self.kind(exchange):
                self.left -= 1
                return True
            return False


def is_answer(exchange):
    return bool(exchange.step)


def is_task(exchange):
    return exchange.is_task


def spoiled_by(cluster, count, kind, spoil):
    """Some answers of the curator are changed on their way."""
    some = Some(count, kind)

    def after(exchange):
        if some(exchange):
            spoil(exchange)

    cluster.proxy.after = after
    return some


@pytest.mark.exhaustive
def test_answers_cut_in_the_middle(cluster):
    some = Some(6, is_task)
    cluster.proxy.cut_at = lambda exchange: len(exchange.answer) // 2 if some(exchange) else None
    run = cluster.begin()
    cluster.finishes(run)
    assert some.left == 0
    assert any(cluster.said(name, "does not answer") for name in PARTIES)


@pytest.mark.exhaustive
def test_slow_answers(cluster):
    some = spoiled_by(cluster, 6, lambda exchange: is_task(exchange) or is_answer(exchange), lambda _: time.sleep(0.7))
    cluster.finishes(cluster.begin())
    assert some.left == 0


def lose(_exchange):
    raise Lost


@pytest.mark.parametrize("kind", mostly_exhaustive([is_task, is_answer], {1}))
def test_lost_answers(cluster, kind):
    some = spoiled_by(cluster, 6, kind, lose)
    cluster.finishes(cluster.begin())
    assert some.left == 0


def another_task(exchange):
    exchange.answer = exchange.answer.replace(b"joining", b"joinink") + b" "


def unsigned(exchange):
    exchange.headers = [(name, value) for name, value in exchange.headers if "ignature" not in name]


def wrongly_packed(exchange):
    exchange.headers.append(("Content-Encoding", "gzip"))


def by_a_gateway(exchange):
    exchange.status, exchange.headers, exchange.answer = 502, [("Content-Type", "text/html")], b"<h1>Bad gateway</h1>"


def elsewhere(exchange):
    exchange.status, exchange.answer = 302, b""
    exchange.headers = [("Location", "http://127.0.0.1:9/")]


def without_sense(exchange):
    exchange.headers = [("Subn-Run", "\xff\xfe"), ("Subn-Curator-Signature", "\xe9")]


SPOILED = [another_task, unsigned, wrongly_packed, by_a_gateway, elsewhere, without_sense]


@pytest.mark.parametrize("spoil", mostly_exhaustive(SPOILED, {0}))
@pytest.mark.parametrize("kind", mostly_exhaustive([is_task, is_answer], {0}))
def test_what_is_forged_on_the_way_is_not_believed(cluster, spoil, kind):
    some = spoiled_by(cluster, 3, kind, spoil)
    cluster.finishes(cluster.begin())
    assert some.left == 0


def test_requests_that_the_network_repeats_count_once(cluster):
    """The second copy bears a nonce that was used; its answer is the one that the party sees."""
    some = Some(4, is_answer)

    def twice(exchange):
        if some(exchange):
            again = dict(exchange.requested)
            cluster.proxy.forward(exchange, again)
            assert exchange.status == 401

    cluster.proxy.after = twice
    cluster.finishes(cluster.begin())
    assert some.left == 0


@pytest.mark.exhaustive
def test_connections_refused_for_a_while_are_tried_with_growing_patience(cluster):
    run = cluster.begin()
    begun = {name: cluster.log(name).stat().st_size for name in PARTIES}
    cluster.proxy.before = lose  # connections that are open
    cluster.proxy.close()
    cluster.kill(CURATOR)  # also ends the long polls that are under way
    cluster.start(CURATOR)
    time.sleep(4)
    tries = {
        name: [line for line in cluster.lines(name, begun[name]) if line["event"] == "cannot go on"] for name in PARTIES
    }
    cluster.proxy.clear()
    cluster.proxy.open()
    for name in PARTIES:
        assert 2 <= len(tries[name]) <= 30
        assert all("does not answer" in line["reason"] for line in tries[name])
        assert all(line["seconds"] <= 0.5 * 2**number for number, line in enumerate(tries[name]))
    cluster.finishes(run)


def test_what_a_party_sends_cannot_be_changed_on_the_way(cluster):
    some = Some(3, is_answer)

    def change(exchange):
        if some(exchange):
            exchange.body = exchange.body[:-1] + b" "

    cluster.proxy.before = change
    run = cluster.begin()
    cluster.finishes(run)
    assert some.left == 0
    assert all(len(digests) == 1 for digests in cluster.proxy.sent.values())
    assert sha256(b"").hexdigest() not in {digest for digests in cluster.proxy.sent.values() for digest in digests}

"""A clock is doubted when it jumps, and when most of those who sign their time contradict it."""

from protocol.services.clock_watch import HEARD_MS, LARGEST_DIFFERENCE_MS, LARGEST_JUMP_MS, SHOWN_MS, ClockWatch

DAY = 24 * 3600 * 1000


def test_a_clock_that_runs_as_the_steady_one_is_trusted():
    watch = ClockWatch()
    for second in range(0, DAY, 3_600_000):
        watch.look(10**12 + second + second // 20_000, second)  # as fast as it may be slewed
        assert (watch.trouble(second), watch.jumps) == (None, 0)


def test_a_jump_in_either_direction_is_told_for_a_while():
    watch = ClockWatch()
    watch.look(0, 0)
    watch.look(1000 + LARGEST_JUMP_MS, 1000)
    assert watch.trouble(1000) is None
    watch.look(3000 - 3_600_000, 2000)
    assert watch.trouble(2000) == ("this machine's clock jumped by -3609 s: check its time synchronisation")
    assert watch.trouble(2000 + SHOWN_MS) is not None
    assert watch.trouble(2001 + SHOWN_MS) is None
    watch.look(0, 3000)
    assert watch.jumps == 2


def test_most_peers_must_contradict_a_clock():
    watch = ClockWatch(fewest=2)
    watch.heard("a", LARGEST_DIFFERENCE_MS + 1, 0)
    assert watch.trouble(0) is None  # one peer against one clock
    watch.heard("b", -5, 0)
    watch.heard("c", 100_000, 0)
    assert watch.trouble(0) == (
        "this machine's clock is 100 s behind the signed time of 2 of 3 peers: check its time synchronisation"
    )
    watch.heard("d", 0, 0)
    assert watch.trouble(0) is None
    assert watch.differences(0) == {"a": 60_001, "b": -5, "c": 100_000, "d": 0}


def test_one_peer_is_enough_where_there_is_only_one():
    watch = ClockWatch()
    watch.heard("curator", -61_000, 0)
    assert watch.trouble(0) == (
        "this machine's clock is 61 s ahead of the signed time of 1 of 1 peers: check its time synchronisation"
    )
    assert watch.trouble(HEARD_MS) is not None
    assert watch.trouble(HEARD_MS + 1) is None
    assert watch.differences(HEARD_MS + 1) == {}
    watch.heard("curator", 60_000, 0)
    assert watch.trouble(0) is None

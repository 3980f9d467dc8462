"""Streams: known answers, determinism, independence of children, and fresh keys after a real fork."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from crypto import randomness
from crypto.randomness import Stream, derive_key

ROOT = Path(__file__).parents[3]

FORK = """
import os
from crypto.randomness import Stream
streams = [Stream.system(), Stream.system().child("part"), Stream.keyed(b"shared")]
for stream in streams:
    stream.take(100)
read, write = os.pipe()
child = os.fork()
drawn = [stream.take(32).hex() for stream in streams]
if child == 0:
    os.write(write, " ".join(drawn).encode())
    os._exit(0)
os.waitpid(child, 0)
print(" ".join(drawn))
print(os.read(read, 4096).decode())
"""


ONCE = """
import os
from crypto.randomness import on_fork
class Prepared:
    left = [1, 2, 3]
    def after_fork(self):
        self.left = []
prepared = Prepared()
on_fork(prepared)
child = os.fork()
if child:
    os.waitpid(child, 0)
print(len(prepared.left), flush=True)
"""


def test_bytes_are_aes256_in_counter_mode_over_zeros() -> None:
    # The block 0 under the key 0, from NIST's AES-256 known answers.
    assert Stream(bytes(32)).take(16).hex() == "dc95c078a2408989ad48a21492842087"


def test_a_fork_draws_other_bytes_but_shared_streams_stay_shared() -> None:
    done = subprocess.run([sys.executable, "-c", FORK], cwd=ROOT, capture_output=True, text=True, check=True)
    parent, child = (line.split() for line in done.stdout.splitlines())
    assert parent[0] != child[0]
    assert parent[1] != child[1]
    assert parent[2] == child[2]
    assert len({*parent, *child}) == 5


def test_a_forked_child_gives_up_what_may_be_used_only_once() -> None:
    done = subprocess.run([sys.executable, "-c", ONCE], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "3"]


def test_a_key_and_a_label_determine_the_stream() -> None:
    first = Stream.keyed(b"secret", "label").take(64)
    assert first == Stream.keyed(b"secret", b"label").take(64)
    assert first != Stream.keyed(b"secret", "other").take(64)
    assert first != Stream.keyed(b"other", "label").take(64)


def test_derived_keys_differ_by_label_and_secret() -> None:
    keys = {derive_key(secret, label) for secret in (b"a", b"b") for label in (b"", b"x", b"y")}
    assert len(keys) == 6
    assert {len(key) for key in keys} == {32}


def test_system_streams_differ() -> None:
    assert Stream.system().take(32) != Stream.system().take(32)


def test_children_are_independent_of_each_other_and_of_what_the_parent_draws_next() -> None:
    parent, twin = Stream.keyed(b"seed"), Stream.keyed(b"seed")
    first, second = parent.child("a"), parent.child("a")
    assert twin.child("a").take(32) == first.take(32)
    drawn = [stream.take(32) for stream in (first, second, parent, Stream.keyed(b"seed").child("b"))]
    assert len(set(drawn)) == 4
    assert twin.child("a").take(32) == drawn[1]


def test_small_requests_never_repeat_bytes() -> None:
    stream = Stream.keyed(b"seed")
    pieces = [stream.take(16) for _ in range(5000)] + [stream.take(5000)[:16], stream.take(16)]
    assert len(set(pieces)) == len(pieces)


@pytest.mark.parametrize("count", [0, 1, 4095, 4096, 4097, 100_000])
def test_any_number_of_bytes(count: int) -> None:
    assert len(Stream.keyed(b"seed").take(count)) == count


def test_requests_larger_than_the_cipher_takes_are_split(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Stream.keyed(b"seed").take(10_000)
    monkeypatch.setattr(randomness, "LARGEST_REQUEST", 4096)
    assert Stream.keyed(b"seed").take(10_000) == whole


def test_words_are_little_endian_views_of_the_bytes() -> None:
    data = Stream.keyed(b"seed").take(24)
    assert Stream.keyed(b"seed").words32(6).tolist() == [
        int.from_bytes(data[i : i + 4], "little") for i in range(0, 24, 4)
    ]
    assert Stream.keyed(b"seed").words64(3).tolist() == [
        int.from_bytes(data[i : i + 8], "little") for i in range(0, 24, 8)
    ]
    assert Stream.keyed(b"seed").words32(0).size == 0


def test_bits_stay_in_range_and_reach_its_ends() -> None:
    stream = Stream.keyed(b"seed")
    assert stream.bits(0) == 0
    assert {stream.bits(3) for _ in range(500)} == set(range(8))
    assert max(stream.bits(127).bit_length() for _ in range(200)) == 127


def test_below_stays_below() -> None:
    stream = Stream.keyed(b"seed")
    assert stream.below(1) == 0
    assert {stream.below(5) for _ in range(500)} == set(range(5))
    assert all(stream.below(2**100 + 1) <= 2**100 for _ in range(100))


@pytest.mark.parametrize("bound", [0, -3])
def test_below_nothing_is_refused(bound: int) -> None:
    with pytest.raises(ValueError, match=f"bound is {bound}, but must be at least 1"):
        Stream.keyed(b"seed").below(bound)


def test_permutations_are_permutations() -> None:
    stream = Stream.keyed(b"seed")
    assert stream.permutation(0) == []
    assert stream.permutation(1) == [0]
    assert sorted(stream.permutation(1000)) == list(range(1000))
    assert stream.permutation(50) != stream.permutation(50)


def test_words_from_the_system_are_not_constant() -> None:
    assert np.unique(Stream.system().words32(1000)).size > 990

"""Changed bytes for any decoder: a seed, and a few changes of the kinds that decoders trip over.

It does not know what the bytes mean.
"""

from collections.abc import Callable, Sequence

from hypothesis import strategies as st

# Numbers and marks that formats treat in a way of their own.
TOKENS = (
    b"",
    b"\0",
    b"\xff\xff\xff\xff",
    b"\xed\xa0\x80",
    "\u202e\ufeff".encode(),
    b"null",
    b"true",
    b"NaN",
    b"-Infinity",
    b"1e999",
    b"-1",
    b"0.5",
    b"9" * 30,
    b"9" * 5000,
    b'"\\ud800"',
    b'"\\u0000"',
    b"[" * 2000,
    b'{"a":' * 2000,
    b"[]",
    b"{}",
    b'""',
    b",",
    b'"',
    b"\n",
    b"\r\n",
    b": ",
    b"../" * 5,
    b"\x1b[2J",
)
_Change = Callable[[bytes], bytes]


@st.composite
def changes(draw: st.DrawFn) -> _Change:
    place, length = draw(st.integers(0, 1 << 16)), draw(st.integers(0, 40))
    kind = draw(st.sampled_from(["flip", "put", "over", "cut", "end", "again"]))
    new = draw(st.sampled_from(TOKENS) | st.binary(max_size=12))

    def change(data: bytes) -> bytes:
        start = place % (len(data) + 1)
        end = min(start + length, len(data))
        if kind == "flip" and start < len(data):
            return data[:start] + bytes([data[start] ^ (1 << length % 8)]) + data[start + 1 :]
        middle = {"put": new, "over": new, "again": data[start:end] * 2}.get(kind, b"")
        rest = {"put": data[start:], "end": b""}.get(kind, data[end:])
        return data[:start] + middle + rest

    return change


def changed(seeds: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """Mostly a seed with one to four changes; sometimes any bytes."""

    def apply(seed: bytes, made: Sequence[_Change]) -> bytes:
        for change in made:
            seed = change(seed)
        return seed

    mutants = st.builds(apply, st.sampled_from(list(seeds)), st.lists(changes(), min_size=1, max_size=4))
    return st.one_of(mutants, mutants, mutants, st.binary(max_size=200))

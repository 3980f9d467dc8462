"""Broken messages of every kind: a good one, what is done to it, and what the refusal must say."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from protocol.exact import canonical_json
from protocol.messages.tasks import MAGIC, encode
from tests.vectors.messages import MESSAGES

Header = dict[str, Any]

# message, what is wrong, the change of its header, what the refusal names
_FIELDS: tuple[tuple[str, str, Callable[[Header], object], str], ...] = (
    ("invitation", "budget as a float", lambda h: h["proposal"].update(epsilon=0.8), "invitation.proposal.epsilon"),
    ("invitation", "budget as an integer", lambda h: h["proposal"].update(epsilon=1), "canonical"),
    ("invitation", "budget not in lowest terms", lambda h: h["proposal"].update(epsilon="8/10"), "canonical"),
    ("invitation", "budget divided by zero", lambda h: h["proposal"].update(theta="1/0"), "invitation.proposal.theta"),
    ("invitation", "unknown field of the plan", lambda h: h["proposal"].update(extra=1), "proposal.extra"),
    ("invitation", "plan of another version", lambda h: h["proposal"].update(version=2), "proposal.version"),
    ("invitation", "short key", lambda h: h["proposal"]["members"][0].update(signing_key="AAAA"), "signing_key"),
    ("invitation", "rows as true", lambda h: h["proposal"]["members"][0].update(rows=True), "members.0.rows"),
    ("invitation", "unknown method", lambda h: h["proposal"].update(method="magic"), "proposal.method"),
    ("invitation", "no plan", lambda h: h.pop("proposal"), "invitation.proposal"),
    ("acceptance", "exchange key of 31 bytes", lambda h: h.update(exchange_key="A" * 41 + "=" * 3), "exchange_key"),
    ("acceptance", "no exchange key", lambda h: h.pop("exchange_key"), "acceptance.exchange_key"),
    ("acceptance", "signature that is no base64", lambda h: h.update(signature="not base64"), "acceptance.signature"),
    ("acceptance", "signature as a list", lambda h: h.update(signature=[1, 2]), "acceptance.signature"),
    ("acceptance", "contributions as a text", lambda h: h.update(contributions="AAAA"), "acceptance.contributions"),
    ("acceptance", "contribution without its padding", lambda h: h.update(contributions=["AA"]), "canonical"),
    ("count", "variable as true", lambda h: h.update(tables=[[True]]), "count.tables.0.0"),
    ("count", "variable as a float", lambda h: h.update(tables=[[1.0]]), "count.tables.0.0"),
    ("count", "variable as a text", lambda h: h.update(tables=[["1"]]), "count.tables.0.0"),
    ("count", "negative variable", lambda h: h.update(tables=[[-1]]), "count.tables.0.0"),
    ("count", "huge variable", lambda h: h.update(tables=[[1 << 20]]), "count.tables.0.0"),
    ("count", "no tables", lambda h: h.pop("tables"), "count.tables"),
    ("count", "tables as an object", lambda h: h.update(tables={}), "count.tables"),
    ("count", "nothing instead of masked tables", lambda h: h.update(masked=None), "count.masked"),
    ("count with the roster", "short key", lambda h: h["roster"][0].update(exchange_key="AAAA"), "count.roster.0"),
    ("count with keys", "unknown field of the keys", lambda h: h["keys"].update(secret=""), "count.keys.secret"),
    ("take-back", "keys, which it never brings", lambda h: h.update(keys=None), "take-back.keys"),
    ("contribution", "blob inside the header", lambda h: h.update(blob="AAAA"), "canonical"),
    ("contribution", "tag of 17 bytes", lambda h: h.update(tags=["A" * 23 + "="]), "contribution.tags.0"),
    ("contribution", "tags as a text", lambda h: h.update(tags="AAAA"), "contribution.tags"),
    ("refusal", "culprit that is not seen", lambda h: h.update(culprit="a\u200b"), "refusal.culprit"),
    ("contribution", "values inside the header", lambda h: h.update(values=[1]), "contribution.values"),
    ("place", "family without a list of parents", lambda h: h.update(families=[[2]]), "place.families.0"),
    ("place", "merged category below 0", lambda h: h.update(merged=[[2, [0, -1]]]), "place.merged.0.1.1"),
    ("place", "clique that is no list", lambda h: h.update(cliques=[1]), "place.cliques.0"),
    ("count", "merged variable without categories", lambda h: h.update(merged=[[2, []]]), "count.merged.0.1"),
    ("placed", "family of three parts", lambda h: h.update(families=[[2, [], 1]]), "placed.families.0"),
    ("placed", "nested parents", lambda h: h.update(families=[[2, [[1]]]]), "placed.families.0.1.0"),
    ("learn", "unknown field", lambda h: h.update(epsilon="1"), "learn.epsilon"),
    ("refusal", "empty reason", lambda h: h.update(reason=""), "refusal.reason"),
    ("refusal", "endless reason", lambda h: h.update(reason="x" * 2001), "refusal.reason"),
    ("learned", "no families", lambda h: h.pop("families"), "learned.families"),
)
# of every kind
_EVERYWHERE: tuple[tuple[str, Callable[[Header], object], str], ...] = (
    ("unknown kind", lambda h: h.update(kind="question"), "kind"),
    ("no kind", lambda h: h.pop("kind"), "kind"),
    ("short hash of the plan", lambda h: h.update(plan=h["plan"][:-1]), ".plan"),
    ("hash of the plan in capitals", lambda h: h.update(plan=h["plan"][:-1] + "F"), ".plan"),
    ("no step", lambda h: h.pop("step"), ".step"),
    ("empty step", lambda h: h.update(step=""), ".step"),
    ("step as a number", lambda h: h.update(step=3), ".step"),
)
_START = len(MAGIC) + 4


def broken() -> Iterator[tuple[str, bytes, str]]:
    """Name, bytes, and a part of the refusal."""
    for name, what, change, refusal in _FIELDS:
        yield f"{name}: {what}", _changed(name, change), refusal
    for name, message in MESSAGES.items():
        if name == message.kind:
            for what, change, refusal in _EVERYWHERE:
                yield f"{name}: {what}", _changed(name, change), refusal
            yield from _broken_frames(name, encode(message))
    kinds = {name: message for name, message in MESSAGES.items() if name == message.kind}
    for name in kinds.keys() - {"contribution", "learned", "place"}:
        yield f"{name}: a blob, which this kind has not", encode(MESSAGES[name]) + b"blob", "4 bytes follow"


def _broken_frames(name: str, good: bytes) -> Iterator[tuple[str, bytes, str]]:
    length = int.from_bytes(good[len(MAGIC) : _START], "big")
    header, blob = good[_START : _START + length], good[_START + length :]
    yield f"{name}: cut within its first bytes", good[: _START - 1], "starts with b'SUBN'"
    yield f"{name}: cut within its header", good[: _START + length - 1], f"a header of {length} bytes"
    yield f"{name}: another protocol", b"HTTP" + good[4:], "starts with b'SUBN'"
    yield f"{name}: another version", MAGIC[:4] + b"\x02" + good[5:], "speaks protocol version 2"
    yield f"{name}: header announced longer than it is", _framed(length + len(blob) + 1, header + blob), "bytes follow"
    yield f"{name}: header announced of 4 GB", _framed(2**32 - 1, header + blob), "4294967295 bytes"
    yield f"{name}: header announced shorter than it is", _framed(length - 1, header + blob), "header"
    yield f"{name}: header that is no JSON", _framed(length, b"\xff" * length), "header"
    yield f"{name}: blanks in the header", _framed(length + 1, b"{ " + header[1:] + blob), "canonical"
    twice = b'{"plan":"' + b"0" * 64 + b'",' + header[1:]
    yield f"{name}: a key twice", _framed(len(twice), twice), "canonical"
    backwards = json.dumps(dict(reversed(json.loads(header).items())), separators=(",", ":"), ensure_ascii=False)
    yield f"{name}: keys in another order", _framed(length, backwards.encode() + blob), "canonical"


def _changed(name: str, change: Callable[[Header], object]) -> bytes:
    message = MESSAGES[name]
    header = json.loads(canonical_json(message.model_dump(mode="json")))
    change(header)
    text = canonical_json(header)
    return _framed(len(text), text + message.blob)


def _framed(length: int, rest: bytes) -> bytes:
    return MAGIC + length.to_bytes(4, "big") + rest

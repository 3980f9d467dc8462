"""A witness of a simulated run: what was computed, what left, what was opened and said, and what of it must not be.

It does not know the schedule. `simulation.md` lists what counts as a failure.
"""

import json
import logging
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import combinations
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import httpx
import numpy as np

from party.answering import answering
from protocol.messages.signatures import NONCE_HEADER
from protocol.messages.tasks import Count, Refusal, TakeBack, decode, encode
from protocol.privacy import noise_modes
from protocol.secure_sum import plain, selected
from protocol.stages.definitions import models
from protocol.stages.dependence import ColumnDependence
from protocol.stages.updates import accumulate, replace
from tests.simulation.homes import CANARIES

if TYPE_CHECKING:
    from tests.simulation.nodes import PartyNode

_QUIET = 400  # of HTTP: from here on nothing was done


@dataclass(frozen=True)
class Answer:
    """An answer as its party computed it: to which tables, and with which noise."""

    plan: str
    step: str
    party: int
    tables: tuple[tuple[int, ...], ...]
    noise: Any
    joint: Any  # of the party's rows, over all variables
    negated: bool = False  # it only takes noise back
    number: Any = None  # in place of counts, where the answer holds how strongly columns depend

    def counts(self, tables: Sequence[tuple[int, ...]] | None = None) -> Any:
        """The plain counts of the party's rows: what the answer holds besides its noise."""
        if self.number is not None:
            return self.number
        wanted = self.tables if tables is None else tables
        found = [_marginal(self.joint, table).ravel() for table in wanted]
        counts = np.concatenate(found) if found else np.zeros(0, dtype=np.int64)
        return counts * (not self.negated)


@dataclass
class Witness:
    failures: list[str] = field(default_factory=list)
    sent: dict[tuple[str, str, str], set[str]] = field(default_factory=lambda: defaultdict(set))
    computed: dict[str, Answer] = field(default_factory=dict)  # by the SHA-256 of the message, and of its blob
    keepers: dict[str, set[tuple[int, ...]]] = field(default_factory=dict)  # whose noise may have been kept, by plan
    opened: Counter[str] = field(default_factory=Counter)
    has_full_disks: bool = False  # then a curator may say that it can store nothing
    _tasks: dict[tuple[str, str, str], str] = field(default_factory=dict)
    _taken: set[str] = field(default_factory=set)
    _masks: dict[bytes, tuple[str, str, tuple[int, int]]] = field(default_factory=dict)
    _added: dict[str, list[str]] = field(default_factory=dict)  # by a sum's SHA-256: those of the answers in it
    _noise: list[Any] = field(default_factory=list)
    _now: tuple[str, str] = ("", "")

    def fails(self, what: str) -> None:
        self.failures.append(what)

    # What leaves a party

    def asks(self, party: "PartyNode", request: httpx.Request) -> None:
        """A request leaves: an answer in it must be charged and logged by now, and be the step's only one."""
        parts = request.url.path.split("/")
        if request.method != "PUT" or "outbox" not in parts:
            return
        run, step, body = parts[3], "/".join(parts[5:]), request.content
        if isinstance(decode(body, party.name), Refusal):
            return
        digest = sha256(body).hexdigest()
        self.sent[run, step, party.name].add(digest)
        if len(self.sent[run, step, party.name]) > 1:
            self.fails(f"two answers of {party.name} to {step} of a run left")
        if digest not in _charged(party, run, step):
            self.fails(f"bytes of {party.name} for {step} left without a charge")
        if digest not in party.home.audit.read_text():
            self.fails(f"bytes of {party.name} for {step} left before they were logged")

    # What the curator says

    def answered(self, request: httpx.Request, status: int, content: bytes) -> None:
        nonce = request.headers.get(NONCE_HEADER)
        is_full = status == httpx.codes.SERVICE_UNAVAILABLE and self.has_full_disks
        if status >= httpx.codes.INTERNAL_SERVER_ERROR and not is_full:
            self.fails(f"the curator says {status}: {content[:200]!r}")
        if status >= _QUIET:
            self.logged("the curator's refusals", content.decode())
        elif nonce is not None:
            if nonce in self._taken:
                self.fails(f"{request.method} {request.url.path} was taken twice")
            self._taken.add(nonce)

    def forgets(self) -> None:
        """The curator's clock, or its whole home, is set back: it may take again what it has forgotten."""
        self._taken.clear()

    def tasked(self, party: str, run: str, task: bytes) -> None:
        """The curator asks: for one step in one way, whatever has happened to it."""
        step = decode(task, "curator").step
        digest = sha256(task).hexdigest()
        if self._tasks.setdefault((run, step, party), digest) != digest:
            self.fails(f"{party} was asked for {step} in two ways")

    # What is said to people

    def logged(self, who: str, text: str) -> None:
        for canary in CANARIES:
            if canary in text:
                self.fails(f"{who} told of {canary}: {text[:200]}")

    # What is computed

    def answer(self, real: Callable[..., Any], state: Any, checked: Any, rows: Any, stream: Any) -> Any:
        terms, step, task = state.terms, checked.step, checked.task
        self._noise, self._now = [], (terms.plan_hash, step.name)
        following, reply = real(state, checked, rows, stream)
        blob, tables, noise = getattr(reply, "blob", b""), (), self._noise
        if isinstance(task, Count | TakeBack):
            tables = tuple(task.tables)
        if isinstance(task, TakeBack):
            noise = [-state.noise[table] for table in tables]
        [joint] = rows.tables([tuple(range(terms.domain.count))])
        drawn = np.concatenate(noise) if noise else np.zeros(0, dtype=np.int64)
        number = ColumnDependence().counted(terms, rows, tables) if step.stage == "dependence" else None
        found = Answer(terms.plan_hash, step.name, state.me, tables, drawn, joint, isinstance(task, TakeBack), number)
        for data in (encode(reply), blob):
            self.computed[sha256(data).hexdigest()] = found
        return following, reply

    def drew(self, vector: Any) -> Any:
        self._noise.append(np.array(vector))
        return vector

    def masks(self, pair_keys: Any, me: int) -> None:
        """Privacy: the masks of one pair are made for one step. Used for two, they cancel in the steps' difference."""
        for peer, key in pair_keys.items():
            use = (*self._now, (min(me, peer), max(me, peer)))
            if self._masks.setdefault(key, use) != use:
                self.fails(f"one mask for {use[1]} and for {self._masks[key][1]}")

    # What the curator opens

    def opens(self, blobs: Sequence[bytes], total: Any, shares: int | None) -> None:
        """A total is the plain sum and the noise that stays: all of it, or that of `shares` parties."""
        digests = [part for blob in blobs if blob for part in self._parts(blob)]
        answers = [self.computed.get(digest) for digest in digests]
        if not answers:
            return
        if None in answers:
            self.fails("the curator opens a sum with an answer that no party computed")
            return
        # Keepers are compared between steps, whichever party answered first in each.
        found = sorted((one for one in answers if one is not None), key=lambda one: one.party)
        if len({(one.plan, one.step) for one in found}) > 1 or len({one.party for one in found}) < len(found):
            self.fails(f"the curator adds up {[(one.step, one.party) for one in found]}")
            return
        self.opened[found[0].plan] += 1
        rest = np.asarray(total, dtype=np.int64) - sum(one.counts() for one in found)
        everybody = tuple(range(len(found)))
        keepers = {everybody} if shares is None else set(combinations(everybody, shares))
        fitting = {who for who in keepers if np.array_equal(rest, sum(found[k].noise for k in who))}
        known = self.keepers.setdefault(found[0].plan, fitting)
        self.keepers[found[0].plan] = known & fitting
        if not known & fitting:
            self.fails(f"the total of {found[0].step} is not the plain sum and the noise that was drawn")

    def adds(self, total: bytes, blob: bytes, result: bytes) -> None:
        """A sum is made of the answers that it was made of, whichever were added up before."""
        self._added[sha256(result).hexdigest()] = [*self._parts(total), *self._parts(blob)]

    def _parts(self, blob: bytes) -> list[str]:
        digest = sha256(blob).hexdigest()
        return self._added.get(digest, [digest])

    def delivers(self, tables: Sequence[Any], replies: Any, step: Any) -> None:
        """With `replace`: the newest party's counts and noise, and its predecessor's noise taken out."""
        answers = [self.computed.get(sha256(replies[party].blob).hexdigest()) for party in reversed(step.parties)]
        newest, *former = [one for one in answers if one is not None]
        found = np.concatenate([table.counts.ravel() for table in tables]) if tables else np.zeros(0)
        expected = newest.counts() + newest.noise
        cells = np.split(expected, np.cumsum([2 ** len(table) for table in newest.tables])[:-1])
        for one in former:
            for table, noise in zip(one.tables, _split(one.noise, one.tables), strict=True):
                cells[newest.tables.index(table)] += noise
        if tables and not np.array_equal(found, np.concatenate(cells)):
            self.fails(f"the tables of {step.name} are not the newest party's rows under its own noise")


class _Handler(logging.Handler):
    def __init__(self, witness: Callable[[], Witness | None]) -> None:
        super().__init__()
        self._witness = witness

    def emit(self, record: logging.LogRecord) -> None:
        witness = self._witness()
        if witness is not None:
            witness.logged(record.name, f"{record.getMessage()} {getattr(record, 'fields', '')}")


class Stand:
    """Where the witness of the present run stands: patches reach it through this."""

    witness: Witness | None = None
    is_taken = False  # whether the patches are in place


STAND = Stand()


def _present() -> Witness:
    assert STAND.witness is not None
    return STAND.witness


@contextmanager
def witnessed() -> Iterator[None]:
    """Let the witness of the present run see what is computed and said."""
    handler, log = _Handler(lambda: STAND.witness), logging.getLogger("curator")
    level = log.level
    with ExitStack() as patches:
        for module, name, made in _patches():
            patches.enter_context(patch.object(module, name, made))
        log.addHandler(handler)
        log.setLevel(logging.INFO)
        try:
            yield
        finally:
            log.removeHandler(handler)
            log.setLevel(level)


def _patches() -> Iterator[tuple[Any, str, Any]]:
    answer, full_noise = answering.answer, noise_modes.full_noise
    yield answering, "answer", lambda *what: _present().answer(answer, *what)
    for module in (noise_modes, accumulate, replace, models):
        yield module, "full_noise", lambda *what: _present().drew(full_noise(*what))
    share = noise_modes.Distributed.own_noise
    yield noise_modes.Distributed, "own_noise", lambda *what: _present().drew(share(*what))
    for module, name in ((plain, "mask_words"), (replace, "mask_words"), (selected, "mask_residues")):
        yield module, name, _masking(getattr(module, name))
    for kind in (plain.PlainOpening, selected.SelectedOpening):
        yield kind, "open", _opening(kind.open)
        yield kind, "add", _adding(kind.add)
    yield replace.ReplacingUpdate, "delivered", _delivering(replace.ReplacingUpdate.delivered)


def _masking(real: Callable[..., Any]) -> Callable[..., Any]:
    def masks(pair_keys: Any, me: int, *more: Any) -> Any:
        _present().masks(pair_keys, me)
        return real(pair_keys, me, *more)

    return masks


def _opening(real: Callable[..., Any]) -> Callable[..., Any]:
    def opens(self: Any, layout: Any, blobs: Sequence[bytes]) -> Any:
        total = real(self, layout, blobs)
        mode = getattr(self, "mode", None)
        _present().opens(blobs, total, None if mode is None else int(mode.shares))
        return total

    return opens


def _adding(real: Callable[..., Any]) -> Callable[..., Any]:
    def adds(self: Any, total: bytes, blob: bytes) -> Any:
        result = real(self, total, blob)
        if blob:
            _present().adds(total, blob, result)
        return result

    return adds


def _delivering(real: Callable[..., Any]) -> Callable[..., Any]:
    def delivered(self: Any, terms: Any, step: Any, known: Any, replies: Any) -> Any:
        tables = real(self, terms, step, known, replies)
        _present().delivers(tables, replies, step)
        return tables

    return delivered


def _charged(party: "PartyNode", run: str, step: str) -> list[str]:
    """Digests of the answers that are on the disk with their charge, as another process reads it."""
    line = sqlite3.connect(f"file:{party.home.ledger}?mode=ro", uri=True)
    try:
        with suppress(sqlite3.OperationalError):
            found = line.execute("SELECT reply_digest FROM answers WHERE run = ? AND step = ?", (run, step))
            return [digest for (digest,) in found]
        return []
    finally:
        line.close()


def _marginal(joint: Any, table: tuple[int, ...]) -> Any:
    rest = tuple(axis for axis in range(joint.ndim) if axis not in table)
    summed = joint.sum(axis=rest)
    order = sorted(table)
    return np.transpose(summed, [order.index(variable) for variable in table])


def _split(vector: Any, tables: Sequence[tuple[int, ...]]) -> list[Any]:
    return list(np.split(vector, np.cumsum([2 ** len(table) for table in tables])[:-1]))


def told(published: bytes) -> Any:
    return json.loads(published)

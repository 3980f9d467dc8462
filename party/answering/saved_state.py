"""A party's state of a run as bytes that outlive the process: JSON, of which nothing is ever executed.

It does not know where the bytes are kept. They hold secrets of the run, so only the party may read them.

Everything that follows from plan, keys and secrets is not kept but computed again, with fresh randomness.
"""

import base64
import json
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from pydantic import ValidationError

from crypto.errors import MalformedKey
from crypto.randomness import Stream
from crypto.sealing import ExchangeKey
from party.errors import Unreadable
from protocol.exact import canonical_json
from protocol.identity import Identity
from protocol.messages.tasks import Keys
from protocol.plan.terms import Terms
from protocol.privacy.layout import Vector
from protocol.secure_sum.selected import selected_sums
from protocol.secure_sum.sums import PartySums
from protocol.stages.party_state import PartyState
from protocol.tables.domain import Variables

VERSION = 2


@dataclass(frozen=True)
class Kept:
    """The state after the last answer, and the curator's keys message, from which the sums' secrets follow."""

    state: PartyState
    keys: Keys | None = field(repr=False, default=None)


def to_bytes(kept: Kept) -> bytes:
    state = kept.state
    noise = [[list(variables), _text(vector.astype("<i8").tobytes())] for variables, vector in state.noise.items()]
    content = {
        "version": VERSION,
        "plan": state.terms.plan_hash,
        "answered": state.answered,
        "run_key": _text(state.run_key.to_bytes()),
        "run_keys": [_text(key) for key in state.run_keys],
        "share": _text(state.share),
        "keys": None if kept.keys is None else kept.keys.model_dump(mode="json"),
        "noise": noise,
        **({"edges": state.edges} if state.edges else {}),
    }
    return canonical_json(content)


def from_bytes(
    data: bytes, terms: Terms, me: int, identity: Identity, stream: Stream, sums: PartySums | None = None
) -> Kept:
    """Restore the state after the last answer. `sums` replaces the cryptography in experiments.

    Privacy: `stream` is a fresh one, so that no re-randomiser of the former process is used again.
    """
    try:
        content = json.loads(data)
        if (content["version"], content["plan"]) != (VERSION, terms.plan_hash):
            raise Unreadable("the state kept of this run is of another plan or program version")
        keys = None if content["keys"] is None else Keys.model_validate_json(json.dumps(content["keys"]))
        run_key = ExchangeKey.from_bytes(_bytes(content["run_key"]))
        run_keys = tuple(_bytes(key) for key in content["run_keys"])
        share = _bytes(content["share"])
        noise = dict(_noise_table(entry) for entry in content["noise"])
        answered = int(content["answered"])
        edges = tuple((int(v), tuple(map(int, starts))) for v, starts in content.get("edges", ()))
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError, ValidationError, MalformedKey):
        # The bytes are secret: the error repeats none of them.
        raise Unreadable("the state kept of this run is damaged; the run cannot go on") from None
    state = PartyState(terms, me, identity, run_key, run_keys, share, answered, edges, sums, noise)
    if sums is None and keys is not None:
        state = replace(state, sums=selected_sums(state.pair_keys, share, keys, stream))
    return Kept(state, keys)


def _noise_table(entry: Any) -> tuple[Variables, Vector]:
    variables, vector = entry
    return tuple(int(v) for v in variables), np.frombuffer(_bytes(vector), dtype="<i8").astype(np.int64)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)

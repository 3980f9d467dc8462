"""Reconciliation of ledger and audit log: each tells of every answer, so that neither can be set back unnoticed.

It does not know what follows from a difference (`party.rollback`).

An answer is written to the ledger first and to the log before it leaves. An answer that only the ledger knows is left
by a kill between the two. An answer that only the log knows was in a ledger that has since been set back.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from party.books.audit import entries, readable
from party.books.ledger_tables import RECOVERED, REFUSAL, Entry
from party.errors import Unreadable
from protocol.exact import exact
from protocol.messages.http import SentReceipt

JOINING = "joining"


@dataclass(frozen=True)
class Forgotten:
    """An answer that the audit log tells of and the ledger lacks; the data set is empty if the log does not say it."""

    receipt: SentReceipt
    dataset: str


def unlogged(path: Path, answers: Iterable[Entry]) -> list[Entry]:
    """Answers in the ledger that are not in the log. A refused invitation is logged before it is in the ledger."""
    try:
        told = list(entries(path))
    except ValueError:
        raise Unreadable(
            f"{path}: a line is no entry of this log, so that nobody knows which answers the log tells of; keep it as "
            "it is, find out who changed it, and move it away to go on"
        ) from None
    logged = {(e["run"], e["step"], e["reply"]) for e in told if e["event"] == "answered"}
    refused = {(e["run"], e["step"]) for e in told if e["event"] == "refused"}
    return [
        a
        for a in answers
        if a.mechanism != RECOVERED
        and (a.run, a.step, a.reply_digest) not in logged
        and not (a.mechanism == REFUSAL and (a.step == JOINING or (a.run, a.step) in refused))
    ]


def forgotten(path: Path, answers: Iterable[Entry]) -> list[Forgotten]:
    """Answers in the log that the ledger lacks."""
    known = {(a.step, a.reply_digest, a.charge, a.delta) for a in answers}
    asked: dict[str, dict[str, Any]] = {}
    found = []
    for entry in readable(path):
        if entry.get("event") == "asked":
            asked[entry["run"]] = entry
        elif entry.get("event") == "answered" and _key(entry) not in known:
            found.append(_forgotten(entry, asked.get(entry["run"], {})))
    return found


def _key(entry: dict[str, Any]) -> tuple[str, str, Fraction, Fraction]:
    return entry["step"], entry["reply"], exact(entry["charge"]), exact(entry.get("delta", "0"))


def _forgotten(entry: dict[str, Any], asked: dict[str, Any]) -> Forgotten:
    step, reply, charge, delta = _key(entry)
    receipt = SentReceipt.model_construct(  # of the party's own log: nobody signed it
        run=entry["run"],
        plan=asked.get("plan", ""),
        step=step,
        charge=charge,
        delta=delta,
        digest=reply,
        signature="",
    )
    return Forgotten(receipt, asked.get("dataset", ""))

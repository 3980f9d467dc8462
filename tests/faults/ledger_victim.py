"""A process that answers steps and is killed: one forked child per kill, so that many kills cost little.

Usage: python ledger_victim.py LEDGER. Writes one JSON line per death to standard output: what the child had confirmed
before it died, and what the ledger said afterwards.
"""

import hashlib
import json
import os
import signal
import sys
import time
from fractions import Fraction
from pathlib import Path

from party.books.budget import Account, Claims
from party.books.ledger import Ledger

RUN, STEPS = "run", 5000
STATEMENTS = range(1, 31)  # die before the n-th SQL statement after opening
MOMENTS = [0.0005 * 1.25**n for n in range(20)]  # or after so many seconds: 0.5 ms to 35 ms


def answer_until_killed(path: Path, confirmed: int, statement: int | None) -> None:
    ledger = Ledger.open(path)
    done = len(ledger.entries())
    if statement is not None:
        _die_before(ledger, statement)
    for number in range(done, STEPS):
        reply = os.urandom(2000)
        charge = Fraction(1, STEPS)
        sent = ledger.record(
            RUN, f"step/{number}", mechanism="count", charge=charge, request_digest="q", reply=reply, kept=reply
        )
        os.write(confirmed, f"{number} {hashlib.sha256(sent).hexdigest()}\n".encode())


def _die_before(ledger: Ledger, statement: int) -> None:
    left = [statement]

    def count(_sql: str) -> None:
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)

    ledger.database.connection.set_trace_callback(count)


def one_death(path: Path, statement: int | None, seconds: float | None) -> dict[str, object]:
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        answer_until_killed(path, writing, statement)
        os._exit(3)  # it was to be killed before it was done
    os.close(writing)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    with os.fdopen(reading) as pipe:
        confirmed = pipe.read().splitlines()
    _, status = os.waitpid(child, 0)
    return {"signal": status, "confirmed": confirmed, **_account(path)}


def _account(path: Path) -> dict[str, object]:
    ledger = Ledger.open(path)
    try:
        entries = ledger.entries()
        kept = ledger.kept(RUN)
        return {
            "spent": str(ledger.spent("patients")),
            "reserved": str(ledger.reserved("patients")),
            "answers": [f"{entry.step.removeprefix('step/')} {entry.reply_digest}" for entry in entries],
            "kept": None if kept is None else hashlib.sha256(kept).hexdigest(),
        }
    finally:
        ledger.close()


def main(path: Path) -> None:
    ledger = Ledger.open(path)
    facts = {"plan_hash": "p", "dataset": "patients", "plan": "", "schema_text": "", "price": Fraction(1)}
    ledger.ask(RUN, **facts, verdict="accept", reasons=[])
    ledger.reserve(RUN, Account("patients", Claims(frozenset({"patients"})), ("patients",), (Fraction(1), Fraction(0))))
    ledger.close()
    for statement in STATEMENTS:
        print(json.dumps(one_death(path, statement, None)), flush=True)
    for seconds in MOMENTS:
        print(json.dumps(one_death(path, None, seconds)), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

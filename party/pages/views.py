"""Facts for each of the data owner's pages, gathered from ledger, log and settings.

It does not know HTML, routes or sessions. Numbers are those of `party.views`, which the command line and JSON print
too.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from crypto.signing import fingerprint
from party.books import audit
from party.books.ledger import Entry, Request
from party.comparison import comparison
from party.home.home import OpenHome
from party.home.keys import own_fingerprint, peer_fingerprint
from party.home.settings import Peer as Noted
from party.logs import utc_now
from party.pages import schema_diff, sentences, timeline
from party.views import accounts, described, line_of, listed
from protocol.errors import PlanError
from protocol.messages.http import Peer
from protocol.plan.plan import Plan
from protocol.plan.promises import not_promised, odds_factor, promises
from protocol.plan.stored import stored_plan
from protocol.text import alike

_RUNS_A_PAGE = 25
_LINES_A_PAGE = 50
_MOST_RECENT = 5
_WORST_PAIRS = 15
_LARGEST_MAP = 60
_LARGE_LETTERS = 16

Item = TypeVar("Item")


class Views:
    def __init__(self, opened: OpenHome) -> None:
        self._opened, self._ledger = opened, opened.ledger

    def overview(self) -> dict[str, Any]:
        under_way = [*self._ledger.requests("accepted"), *self._ledger.requests("active")]
        over = self._ledger.requests("ended")[-_MOST_RECENT:]
        return {
            "asked": [described(self._opened, request) for request in self._ledger.requests("asked")],
            "under_way": [listed(self._opened, request) for request in under_way],
            "recent": [_brief(request) for request in reversed(over)],
            "accounts": accounts(self._opened),
        }

    def requests(self, page: int) -> dict[str, Any]:
        found = [_brief(request) for request in reversed(self._ledger.requests())]
        return _paged("requests", found, page, _RUNS_A_PAGE)

    def request(self, request: Request) -> dict[str, Any]:
        facts = described(self._opened, request)
        entries = [line_of(entry) for entry in self._ledger.entries(run=request.run)]
        answered = {entry["step"]: entry for entry in entries}
        plan = _plan(request)
        return {
            "facts": facts,
            "entries": entries,
            "answered": answered,
            "is_compared": self._is_compared(request),
            "promises": promises(plan) if plan is not None else [],
            "not_promised": not_promised(),
            "against": plan.against if plan is not None else (),
        }

    def account(self, name: str) -> dict[str, Any] | None:
        """An account, found by its name or by that of a data set which shares it."""
        found = next((one for one in self._opened.accounts_ever() if name in (one.name, *one.datasets)), None)
        if found is None:
            return None
        entries, budget = self._ledger.entries(found.claims), self._opened.budget(found)
        runs = [
            {"run": one.run, "at": one.at, "charge": str(one.charge), "spent": str(one.spent + found.before[0])}
            | {"odds": odds_factor(one.spent + found.before[0]), "plan": _plan_of(entries, one.run)}
            for one in timeline.spendings(entries)
        ]
        return {
            "name": found.name,
            "account": accounts(self._opened)[found.name],
            "odds": odds_factor(budget.spent + budget.reserved),
            "delta": str(budget.delta_spent + budget.delta_reserved),
            "runs": runs[::-1],
            "picture": timeline.picture(entries, budget.total, budget.reserved, utc_now(), found.before[0]),
        }

    def left(self, page: int) -> dict[str, Any]:
        """Every answer, newest first, as stored in the ledger before it leaves."""
        entries = self._ledger.entries()
        lines = [line_of(entry) for entry in reversed(entries)]
        total = sum(entry.reply_bytes for entry in entries)
        return _paged("entries", lines, page, _LINES_A_PAGE) | {"bytes": total, "accounts": accounts(self._opened)}

    def audit(self, search: str, page: int) -> dict[str, Any]:
        path = self._opened.home.audit
        problems = self._opened.audit_problems()
        everything = list(audit.readable(path))
        wanted = [entry for entry in reversed(everything) if audit.holds(entry, search)]
        facts = {"problems": problems, "count": len(everything), "search": search}
        return _paged("entries", wanted, page, _LINES_A_PAGE) | facts

    def peers(self, roster: Sequence[Peer] | None) -> dict[str, Any]:
        """The other parties, from the curator's roster or else from former requests, with their noted fingerprints."""
        noted = self._opened.peers
        found = self._shown_by(roster) if roster is not None else self._met(noted)
        own = self._opened.curator.name
        return {
            "own": own_fingerprint(self._opened.keys),
            "curator": {
                "url": self._opened.curator.url,
                "fingerprint": fingerprint(bytes.fromhex(self._opened.curator.key)),
            },
            "peers": [
                self._peer(noted.get(name), name, shown, revoked) | {"alike": alike(name, found)}
                for name, (shown, revoked) in found.items()
                if name != own
            ],
            "is_roster": roster is not None,
        }

    def rules(self) -> dict[str, Any]:
        return {
            "sentences": list(sentences.rules(self._opened.settings, self._opened.accounts)),
            "file": str(self._opened.home.settings),
        }

    def comparison(self, request: Request) -> dict[str, Any]:
        found = comparison.kept(self._opened, request)
        schema = schema_diff.asked_schema(request)
        facts: dict[str, Any] = {
            "facts": described(self._opened, request),
            "found": found,
            "targets": comparison.targets(schema) if schema else [],
            "can_classify": comparison.can_classify(),
            "worst": [],
            "map": None,
        }
        if found is not None:
            worst = sorted(found["pairs"], key=lambda pair: -pair["distance"])
            facts |= {
                "worst": worst[:_WORST_PAIRS],
                "map": _map(found) if len(found["columns"]) <= _LARGEST_MAP else None,
            }
        return facts

    def _is_compared(self, request: Request) -> bool:
        return comparison.kept(self._opened, request) is not None

    def _shown_by(self, roster: Sequence[Peer]) -> dict[str, tuple[str, bool]]:
        return {
            peer.name: (
                peer_fingerprint(bytes.fromhex(peer.signing_key), bytes.fromhex(peer.exchange_key)),
                peer.revoked,
            )
            for peer in roster
        }

    def _met(self, noted: Mapping[str, Noted]) -> dict[str, tuple[str, bool]]:
        plans = [plan for plan in map(_plan, self._ledger.requests()) if plan is not None]
        met = {
            member.name: (peer_fingerprint(member.signing_key, member.exchange_key), False)
            for plan in plans
            for member in plan.members
        }
        return {name: (peer.fingerprint, False) for name, peer in noted.items()} | met

    def _peer(self, noted: Noted | None, name: str, shown: str, revoked: bool) -> dict[str, Any]:
        return {
            "name": name,
            "fingerprint": shown,
            "revoked": revoked,
            "noted": noted.fingerprint if noted is not None else None,
            "compared": noted is not None and noted.fingerprint == shown,
        }


def _plan(request: Request) -> Plan | None:
    """A request's plan; none if only its essentials were kept, or if it is of another version of this program."""
    try:
        return stored_plan(request.plan) if request.plan else None
    except PlanError:
        return None


def _brief(request: Request) -> dict[str, Any]:
    """A request in one line of a list; the keys are those of `party.views.described`."""
    return {
        "run": request.run,
        "plan": request.plan_hash,
        "state": request.state,
        "outcome": request.outcome,
        "reason": request.reason,
        "asked": request.at,
        "dataset": request.dataset,
        "price": str(request.price),
        "spent": str(request.spent),
    }


def _paged(name: str, items: Sequence[Item], page: int, size: int) -> dict[str, Any]:
    pages = max(1, -(-len(items) // size))
    page = min(page, pages)
    return {name: items[(page - 1) * size : page * size], "page": page, "pages": pages, "number": len(items)}


def _plan_of(entries: Sequence[Entry], run: str) -> str:
    return next(entry.plan_hash for entry in entries if entry.run == run)


def _map(found: dict[str, Any]) -> dict[str, Any]:
    """Draw the pairs as squares of a triangle; the darkest has the largest distance."""
    names = [column["name"] for column in found["columns"]]
    place = {name: index for index, name in enumerate(names)}
    worst = max((pair["distance"] for pair in found["pairs"]), default=0) or 1
    squares = []
    for pair in found["pairs"]:
        i, j = sorted(place[name] for name in pair["columns"])
        share = pair["distance"] / worst
        squares.append({"x": i, "y": j, "shade": round(0.06 + 0.94 * share, 3), "names": (names[i], names[j])} | pair)
    letters = 0.32 if len(names) <= _LARGE_LETTERS else 0.6
    return {
        "size": len(names),
        "margin": round(letters * 10),
        "letters": letters,
        "squares": squares,
        "worst": worst,
        "names": names,
    }

"""Views of invitations and of the account for the data owner: as data, and in plain words.

It does not know how decisions are made or carried out. All facts are public or the owner's own bookkeeping.
"""

import json
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

from crypto.signing import fingerprint
from party.answering.essentials import stored_essentials
from party.answering.invitation import place_in
from party.books.budget import Account
from party.books.ledger import Entry, Request
from party.home.home import OpenHome
from party.home.keys import own_fingerprint
from party.home.settings import Peer
from protocol.errors import SubnError
from protocol.forecast.costs import Forecast, StepForecast, forecast
from protocol.plan.promises import People, about_one_person, odds_factor, owners_conditions, protected_from
from protocol.plan.stored import stored_plan
from protocol.plan.terms import Terms
from protocol.run.agreement import agree
from protocol.run.scans import most_scans
from protocol.stages.registry import stage_of
from protocol.tables.schema import Schema

STATES = {
    "asked": "needs your decision",
    "accepted": "accepted, about to join",
    "refused": "refused, not sent to the curator yet",
    "active": "under way",
    "ended": "over",
}
_PLACES = 6
_BEFORE = {"before": "epsilon", "delta_before": "delta"}


def described(opened: OpenHome, request: Request) -> dict[str, Any]:
    """Describe an invitation: who asks, what each step reads, what the run costs, and what remains."""
    steps = _steps(opened, request)
    return summary(opened, request) | {"steps": steps, "engine": _engine(opened, request, steps)}


def listed(opened: OpenHome, request: Request) -> dict[str, Any]:
    """Describe an invitation in a list: for a run that is over, its steps are left out."""
    steps = _steps(opened, request) if request.state != "ended" else []
    return summary(opened, request) | {"steps": steps, "engine": _engine(opened, request, steps)}


def summary(opened: OpenHome, request: Request) -> dict[str, Any]:
    """Describe an invitation without its steps, which have to be worked out from the plan."""
    found, noted = _essentials(request), opened.peers
    facts: dict[str, Any] = {
        "run": request.run,
        "plan": request.plan_hash,
        "state": request.state,
        "asked": request.at,
        "outcome": request.outcome,
        "reason": request.reason,
        "verdict": request.verdict,
        "reasons": list(request.reasons),
        "curator": _curator(opened),
        "dataset": request.dataset,
        **found,
        "parties": [_member(opened, noted, member) for member in found["parties"]],
        "price": str(request.price),
        "delta": str(request.delta),
        "spent": str(request.spent),
        "spent_delta": str(request.spent_delta),
        "reserved": str(request.reserved),
        "budget": _budget(opened, request),
    }
    odds = {"run": request.price, "spent": request.spent, "all": _committed(facts)}
    return facts | {"odds": {what: odds_factor(epsilon) for what, epsilon in odds.items()}}


def promise(facts: dict[str, Any]) -> str:
    """State what the run means for one person. Always show it with `owners_conditions`."""
    is_over = facts["state"] in ("refused", "ended")
    epsilon = Fraction(facts["spent"] if is_over else facts["price"])
    return about_one_person(epsilon, Fraction(facts["spent_delta" if is_over else "delta"]), is_over, people(facts))


def people(facts: Mapping[str, Any]) -> People:
    """How many rows a person may have in the run, and whether this party's table was checked for it."""
    own = [member for member in facts["parties"] if member["you"]]
    is_checked = any(member.get("rows_per_person") is not None for member in own)
    return People(facts.get("rows_per_person", 1), facts.get("parties_per_person", 1), is_checked)


@lru_cache(maxsize=256)
def schema_in(text: str) -> Schema | None:
    """Parse the schema of an invitation; None if the text is none, as invitations are noted before they are judged."""
    try:
        return Schema.parse(text)
    except SubnError:
        return None


def accounts(opened: OpenHome) -> dict[str, dict[str, Any]]:
    """All accounts by name, also those of data sets of the past."""
    return {one.name: _account(opened, one) for one in opened.accounts_ever()}


def sharing(account: Mapping[str, Any]) -> str:
    """Say which data sets share an account; nothing for an account of one data set."""
    names = account["datasets"]
    return f"{', '.join(names[:-1])} and {names[-1]} share this budget" if len(names) > 1 else ""


def notes(account: Mapping[str, Any]) -> list[str]:
    """What has to be known beside an account's amounts: who shares it, and what was spent before its ledger."""
    before = [f"{what} {amount(account[name])}" for name, what in _BEFORE.items() if account[name] != "0"]
    told = f"of what is spent, {' and '.join(before)} was spent before this ledger was begun" if before else ""
    return [note for note in (sharing(account), told) if note]


def _budget(opened: OpenHome, request: Request) -> dict[str, Any] | None:
    if request.dataset is None:
        return None
    return _account(opened, opened.account_of(request.dataset, request.source, request.budget))


def _account(opened: OpenHome, found: Account) -> dict[str, Any]:
    budget = opened.budget(found)
    named = {"total": budget.total, "spent": budget.spent, "reserved": budget.reserved, "left": budget.left}
    named |= {"delta_total": budget.delta_total, "delta_spent": budget.delta_spent}
    named |= {"delta_reserved": budget.delta_reserved, "delta_left": budget.delta_left}
    named |= {"before": found.before[0], "delta_before": found.before[1]}
    whose = {"account": found.name, "datasets": list(found.datasets)}
    return whose | {name: str(value) for name, value in named.items()}


def line_of(entry: Entry) -> dict[str, Any]:
    return {
        "at": entry.at,
        "dataset": entry.dataset,
        "run": entry.run,
        "plan": entry.plan_hash,
        "step": entry.step,
        "mechanism": entry.mechanism,
        "charge": str(entry.charge),
        "delta": str(entry.delta),
        "request": entry.request_digest,
        "reply": entry.reply_digest,
        "bytes": entry.reply_bytes,
    }


def amount(text: str) -> str:
    """Write a budget for people: a decimal if that is exact, otherwise a rounded decimal and the exact fraction."""
    value = Fraction(text)
    decimal = f"{float(value):.{_PLACES}f}".rstrip("0").rstrip(".") or "0"
    return decimal if Fraction(decimal) == value else f"about {float(value):.4g} ({value})"


def in_words(facts: dict[str, Any]) -> Iterator[str]:
    """Describe an invitation in words, line by line."""
    yield f"run {facts['run']}: {STATES[facts['state']]}{_ending(facts)}"
    yield f"  wanted      a synthetic table of {facts['synthetic_rows']:,} rows, by {facts['method']}"
    yield f"  your data   {facts['dataset'] or 'none: no data set of yours has this schema'}"
    yield from _about_parties(facts)
    yield from _about_steps(facts["steps"])
    yield from _about_engine(facts.get("engine"))
    yield from _about_money(facts)
    for reason in facts["reasons"]:
        yield f"  {facts['verdict']:10}  {reason}"
    if facts["state"] == "asked":
        yield f'  to decide   subn-party accept {facts["run"]}  or  subn-party refuse {facts["run"]} --reason "..."'


def _curator(opened: OpenHome) -> dict[str, str]:
    return {"url": opened.curator.url, "fingerprint": fingerprint(bytes.fromhex(opened.curator.key))}


def _essentials(request: Request) -> dict[str, Any]:
    """What the plan says in short; of a run that came to nothing, the part that was kept."""
    if not request.plan:
        kept: dict[str, Any] = json.loads(request.essentials)
        return kept
    return stored_essentials(request.plan, schema_in(request.schema_text))


def _member(opened: OpenHome, noted: Mapping[str, Peer], member: dict[str, Any]) -> dict[str, Any]:
    peer = noted.get(member["name"])
    is_own = member["fingerprint"] == own_fingerprint(opened.keys)
    compared = is_own or (peer is not None and peer.fingerprint == member["fingerprint"])
    return member | {"compared": compared, "you": is_own}


def _committed(facts: dict[str, Any]) -> Fraction:
    """The epsilon that the data set has spent and set aside, including this run."""
    budget = facts["budget"] or {"spent": "0", "reserved": "0"}
    is_to_come = facts["state"] in ("asked", "accepted")
    return Fraction(budget["spent"]) + Fraction(budget["reserved"]) + (Fraction(facts["price"]) if is_to_come else 0)


def _steps(opened: OpenHome, request: Request) -> list[dict[str, Any]]:
    """The tasks of this party, by step, for display only; none if no party can agree to the plan."""
    found = _worked_out(request.plan, request.schema_text) if request.plan else None
    if found is None:
        return []
    terms, predicted = found
    try:
        me = place_in(opened, terms.plan)
    except SubnError:
        return []
    return [
        _step(terms, me, index, one) for index, one in enumerate(predicted.steps) if me in terms.steps[index].parties
    ]


@lru_cache(maxsize=64)
def _worked_out(plan: str, schema_text: str) -> tuple[Terms, Forecast] | None:
    """Terms and forecast of a plan, cached because pages are reloaded often; None if no party can agree to it."""
    try:
        terms = agree(stored_plan(plan), Schema.parse(schema_text), smallest_key=0)
        return terms, forecast(terms)
    except SubnError:
        return None


def _step(terms: Terms, me: int, index: int, found: StepForecast) -> dict[str, Any]:
    step = terms.steps[index]
    return {
        "step": step.name,
        "tables": found.tables,
        "cells": found.cells,
        "bytes": found.bytes_per_party,
        "price": str(step.charge(me)),
        "picks": stage_of(terms, step).most_choices(terms, me) if step.charge(me) else 0,
        "scans": most_scans(terms, step, me, found.tables),
    }


def _engine(opened: OpenHome, request: Request, steps: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The engine that counts the rows, and how often it reads them at most; None if they are counted here."""
    dataset = opened.settings.datasets.get(request.dataset or "")
    if dataset is None or not dataset.engine or not steps:
        return None
    return {"shown": dataset.engine_shown, "scans": sum(step["scans"] for step in steps)}


def _ending(facts: dict[str, Any]) -> str:
    outcome = f", {facts['outcome']}" if facts["outcome"] else ""
    return outcome + (f": {facts['reason']}" if facts["reason"] else "")


def _about_parties(facts: dict[str, Any]) -> Iterator[str]:
    curator = facts["curator"]
    yield f"  asked by    the curator at {curator['url']} (fingerprint {curator['fingerprint']})"
    for member in facts["parties"]:
        compared = "compared" if member["compared"] else f"NOT compared: {member['fingerprint']}"
        yield f"  together    {member['name']}, {member['rows']:,} rows ({'you' if member['you'] else compared})"
    if facts["more_parties"]:
        yield f"  together    {facts['more_parties']} more"
    yield f"  protected   from {protected_from(facts['insiders'])}"


def _about_steps(steps: list[dict[str, Any]]) -> Iterator[str]:
    if steps:
        yield f"  {'step':20} {'tables':>8} {'cells':>12} {'bytes':>12}   price"
    for step in steps:
        what = f"{step['picks']} picks" if step["picks"] else f"{step['tables']:,}"
        yield f"  {step['step']:20} {what:>8} {step['cells']:>12,} {step['bytes']:>12,}   {amount(step['price'])}"


def _about_engine(engine: dict[str, Any] | None) -> Iterator[str]:
    if engine is not None:
        yield f"  counted     in {engine['shown']}, by at most {engine['scans']:,} scans; no row comes here"


def _about_money(facts: dict[str, Any]) -> Iterator[str]:
    yield f"  price       epsilon {amount(facts['price'])} in total; {amount(facts['spent'])} of it is spent"
    if facts["delta"] != "0":
        yield f"  delta       {amount(facts['delta'])}; {amount(facts['spent_delta'])} of it is spent"
    budget = facts["budget"]
    if budget is not None:
        yield (
            f"  budget      epsilon {amount(budget['total'])} for all runs: {amount(budget['spent'])} spent, "
            f"{amount(budget['reserved'])} set aside, {amount(budget['left'])} left"
        )
        yield from (f"              {one}" for one in notes(budget))
        if facts["state"] == "asked":
            remains = max(Fraction(0), Fraction(budget["left"]) - Fraction(facts["price"]))
            yield f"  afterwards  epsilon {amount(str(remains))} would be left"
            yield f"  it means    {promise(facts)}"
            yield from (f"              {one}" for one in owners_conditions(facts["insiders"], people(facts)))

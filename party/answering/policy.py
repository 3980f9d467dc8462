"""The data owner's rules, applied to one run: accept it, ask the owner, or refuse it, with reasons in plain words.

It does not know files, the ledger or rows; it judges public numbers only.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from party.books.budget import Budget
from party.home.keys import peer_fingerprint
from party.home.settings import Peer, Policy
from protocol.plan.plan import Member, Plan
from protocol.plan.terms import Terms
from protocol.text import alike


@dataclass(frozen=True)
class Verdict:
    decision: Literal["accept", "ask", "refuse"]
    reasons: tuple[str, ...]


def judge(
    policy: Policy, peers: Mapping[str, Peer], terms: Terms, me: int, budget: Budget, *, is_fruitless: bool = False
) -> Verdict:
    """Refuse a run that breaks rules, with every reason; a run that breaks none may still need the owner's decision.

    `is_fruitless`: too many requests in a row came to nothing.
    """
    plan = terms.plan
    broken = (*_about_the_run(policy, plan), *_about_money(policy, terms, me, budget), *_about_keys(peers, plan))
    if broken:
        return Verdict("refuse", broken)
    doubts = [*_strangers(peers, plan, me)]
    doubts += ["every run is accepted by hand"] if policy.accept == "ask" else []
    doubts += ["many requests in a row came to nothing: ask the operator why"] if is_fruitless else []
    return Verdict("ask", tuple(doubts)) if doubts else Verdict("accept", ("every rule allows it",))


def _about_the_run(policy: Policy, plan: Plan) -> Iterator[str]:
    if plan.method not in policy.methods:
        yield f"the method is {plan.method}, allowed are {_listed(policy.methods)}"
    if plan.method != "independent" and plan.noise not in policy.noise:
        yield f"the noise is {plan.noise}, allowed are {_listed(policy.noise)}"
    if plan.rule and plan.split[2] and plan.rule not in policy.updates:
        yield f"the update is {plan.rule}, allowed are {_listed(policy.updates)}"
    if plan.parties < policy.smallest_parties:
        yield f"it has {plan.parties} parties, at least {policy.smallest_parties} are needed"
    for member in plan.members:
        if member.rows < policy.smallest_rows:
            yield f"{member.name} has {member.rows} rows, everybody needs at least {policy.smallest_rows}"
    if plan.insiders < policy.smallest_insiders and plan.method != "independent":
        others = "1 other party" if plan.insiders == 1 else f"{plan.insiders} other parties that pool what they know"
        yield f"it protects from {others}, at least {policy.smallest_insiders} are needed"


def _about_money(policy: Policy, terms: Terms, me: int, budget: Budget) -> Iterator[str]:
    price, delta = terms.price(me), terms.delta(me)
    if delta > policy.delta_per_run:
        yield f"it costs a delta of {delta}, one run may cost {policy.delta_per_run or 'none: it has to be pure'}"
    if delta > budget.delta_left:
        yield (
            f"it costs a delta of {delta}, only {budget.delta_left} is left of {budget.delta_total} "
            f"({budget.delta_spent} spent, {budget.delta_reserved} set aside)"
        )
    if price > policy.epsilon_per_run:
        yield f"it costs {price}, one run may cost {policy.epsilon_per_run}"
    if price > budget.left:
        yield (
            f"it costs {price}, only {budget.left} is left of {budget.total} "
            f"({budget.spent} spent, {budget.reserved} set aside)"
        )


def _about_keys(peers: Mapping[str, Peer], plan: Plan) -> Iterator[str]:
    for member in plan.members:
        if member.name in peers and peers[member.name].fingerprint != _fingerprint(member):
            yield (
                f"{member.name} has the fingerprint {_fingerprint(member)}, you have noted "
                f"{peers[member.name].fingerprint}: its keys have changed, or are another's"
            )


def _strangers(peers: Mapping[str, Peer], plan: Plan, me: int) -> Iterator[str]:
    for index, member in enumerate(plan.members):
        if index != me and member.name not in peers:
            names = {*peers, *(other.name for other in plan.members)}
            taken = alike(member.name, sorted(names))
            warning = f"; its name can be taken for {', '.join(taken)}" if taken else ""
            yield f"compare the fingerprint of {member.name} with its data owner: {_fingerprint(member)}{warning}"


def _fingerprint(member: Member) -> str:
    return peer_fingerprint(member.signing_key, member.exchange_key)


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names)

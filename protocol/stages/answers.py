"""A party's answers: the only functions of a run that read rows, each after its step has been charged.

It does not know whether it may answer (`protocol.stages.requests`) or what it costs (`protocol.plan.schedule`).
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from crypto.masking import mask_words
from crypto.randomness import Stream
from protocol.errors import CURATOR, FailedCheck
from protocol.exact import canonical_json, digest
from protocol.messages.tasks import Contribution, Count, Learned, Place, Placed, TakeBack
from protocol.network.limits import Limits
from protocol.network.network import Family, Network, maximal_families
from protocol.network.parent_sets import candidates
from protocol.picks.by_model import Judge, admissible_pairs, tree_options
from protocol.picks.by_score import choose
from protocol.plan.passes import layout_of, parameters_of_model, picked_pairs
from protocol.plan.schedule import Step
from protocol.plan.terms import Terms
from protocol.privacy.layout import Vector, joined, split_vector, words_to_bytes
from protocol.secure_sum.plain import full_noise
from protocol.secure_sum.selected import PairKeys, selected_sums
from protocol.stages.party_state import PartyState
from protocol.stages.reference_rows import reference_of
from protocol.stages.requests import families_of
from protocol.tables.counting import Rows
from protocol.tables.domain import Merged, Variables


def counts_of(rows: Rows, tables: Sequence[Variables]) -> Vector:
    return joined([table.ravel() for table in rows.tables(tables)])


def contribute(
    state: PartyState, step: Step, task: Count, rows: Rows, stream: Stream
) -> tuple[PartyState, Contribution]:
    terms = state.terms
    if state.sums is None:
        if task.keys is None:
            raise FailedCheck(CURATOR, f"sent no keys with the first sum pass {step.name!r}")
        state = replace(state, sums=selected_sums(terms, state.me, state.identity, state.share, task.keys, stream))
    assert state.sums is not None
    layout = layout_of(terms, step, task.tables, terms.plan.total_rows, task.merged)
    counts = counts_of(rows.over(terms.domain.with_merged(task.merged)), task.tables)
    blob = state.sums.contribute(layout, counts, _asked(step, task.tables, task.merged), stream)
    return state, Contribution(plan=terms.plan_hash, step=step.name, blob=blob)


def deliver(state: PartyState, step: Step, task: Count, rows: Rows, stream: Stream) -> tuple[PartyState, Contribution]:
    """One party's own tables under a full share of its own noise: private by itself, against everybody."""
    layout = layout_of(state.terms, step, task.tables, rows.count)
    noise = full_noise(state.terms.plan, layout, stream)
    words = (counts_of(rows, task.tables) + noise).view(np.uint64)
    parts = layout.split(words)
    if task.masked:
        masked = [layout.cells[index] for index in task.masked]
        going_on = [task.tables[index] for index in task.masked]
        masks = split_vector(_handover_mask(state, step, going_on, sum(masked)), masked)
        for index, mask in zip(task.masked, masks, strict=True):
            parts[index] = parts[index] + mask
    kept = dict(zip(task.tables, layout.split(noise), strict=True)) if state.terms.plan.update == "replace" else {}
    blob = b"".join(words_to_bytes(part) for part in parts)
    return replace(state, noise=kept), Contribution(plan=state.terms.plan_hash, step=step.name, blob=blob)


def take_back(state: PartyState, step: Step, task: TakeBack) -> tuple[PartyState, Contribution]:
    """Minus the noise of the update before, under a mask that cancels with the successor's."""
    noise = joined([state.noise[table] for table in task.tables])
    words = _handover_mask(state, step, task.tables, noise.size) - noise.view(np.uint64)
    reply = Contribution(plan=state.terms.plan_hash, step=step.name, blob=words_to_bytes(words))
    return replace(state, noise={}), reply


def _asked(step: Step, tables: Sequence[Variables], merged: Sequence[Merged] = ()) -> bytes:
    """What masks depend on besides the plan.

    Privacy: a pass shares its budget over its tables. Were parties asked for different ones, a party that is asked
    for many would be hidden by the noise of one that was asked for few; so that these masks must not cancel.
    """
    return f"{step.name} {digest(canonical_json([tables, merged]))}".encode()


def _handover_mask(state: PartyState, step: Step, tables: Sequence[Variables], count: int) -> NDArray[np.uint64]:
    """The mask between the two parties of one `replace` update."""
    keys = PairKeys(state.terms, state.me, state.identity)(_asked(step, tables))
    pair = {peer: key for peer, key in keys.items() if peer in step.parties}
    return mask_words(pair, state.me, count)


def place(state: PartyState, step: Step, task: Place, rows: Rows, stream: Stream) -> Placed:
    """Phase 2: this party's share of the variables, each picked privately on its own rows."""
    terms = state.terms
    if terms.plan.score == "M":
        return _place_by_model(state, step, task, rows, stream)
    before = families_of(task)
    placed = _grow(terms, before, terms.plan.picks[state.me], step.budget, terms.limits, rows, stream)
    return Placed(plan=terms.plan_hash, step=step.name, families=_wire(placed))


def _place_by_model(state: PartyState, step: Step, task: Place, rows: Rows, stream: Stream) -> Placed:
    """Variables, or further pairs, picked by what the tables released so far answer worst."""
    terms, plan = state.terms, state.terms.plan
    reference, rows = reference_of(terms, task), rows.over(terms.domain.with_merged(task.merged))
    judge = Judge(rows, reference, terms.table_noise(step) * rows.count / plan.total_rows)
    families, taken = families_of(task), picked_pairs(families_of(task), task.further)
    picks = plan.picks[state.me] if step.stage == "initial" else plan.further[state.me]
    found: list[Family] = []
    if step.stage == "initial" and not families and picks:
        found.append(Family(stream.below(terms.domain.count)))
    private_picks = picks - len(found)
    for _ in range(private_picks):
        if step.stage == "initial":
            every = tree_options(terms.domain.count, [f.child for f in (*families, *found)])
            options = [o for o in every if terms.limits.admits(terms.domain, o[0], o[1:])]
        else:
            options = admissible_pairs(reference.domain.sizes, [*taken, *(f.variables for f in found)])
        if options:
            epsilon = plan.law.choice_epsilon(step.budget / private_picks, plan.choice)
            child, *parents = judge.pick(options, epsilon, plan.choice, stream)
            found.append(Family(child, tuple(parents)))
    return Placed(plan=terms.plan_hash, step=step.name, families=_wire(found))


def learn(state: PartyState, step: Step, rows: Rows, stream: Stream) -> Learned:
    """Method independent: PrivBayes on this party's own rows."""
    terms = state.terms
    count = terms.domain.count
    families = _grow(terms, [], count, terms.plan.split[0], terms.local_limits(state.me), rows, stream)
    tables = maximal_families(Network(tuple(families)), terms.domain)
    layout = layout_of(terms, parameters_of_model(terms, step), tables, rows.count)
    noisy = counts_of(rows, tables) + full_noise(terms.plan, layout, stream)
    blob = words_to_bytes(noisy.view(np.uint64))
    return Learned(plan=terms.plan_hash, step=step.name, families=_wire(families), blob=blob)


def _grow(
    terms: Terms,
    before: Sequence[Family],
    picks: int,
    budget: Fraction,
    limits: Limits,
    rows: Rows,
    stream: Stream,
) -> list[Family]:
    """`picks` more families: the very first variable blindly, every other one by a private choice."""
    placed = [family.child for family in before]
    found: list[Family] = []
    if not placed and picks:
        found.append(Family(stream.below(terms.domain.count)))
    private_picks = picks - len(found)
    while len(found) < picks:
        inside = placed + [family.child for family in found]
        outside = [v for v in range(terms.domain.count) if v not in inside]
        options = candidates(terms.domain, inside, outside, limits)
        plan = terms.plan
        epsilon = plan.law.choice_epsilon(budget / private_picks, plan.choice)
        found.append(Family(*choose(rows, options, plan.score, epsilon, plan.choice, stream)))
    return found


def _wire(families: Sequence[Family]) -> tuple[tuple[int, Variables], ...]:
    return tuple((family.child, family.parents) for family in families)

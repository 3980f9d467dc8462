"""Agreement on terms: checks of a plan against its schema and its price, before anybody joins.

It does not know rows. Every refusal is one sentence that says what was found, what was expected and what to do.
"""

from fractions import Fraction
from math import comb
from typing import get_args

from crypto.errors import MalformedKey, NoiseOutOfReach
from crypto.paillier.public import LARGEST_BITS, SMALLEST_BITS
from crypto.sealing import check_public as check_exchange
from crypto.signing import check_public as check_signing
from protocol.errors import CURATOR, PlanError, PriceError
from protocol.network.limits import Limits
from protocol.options import Update
from protocol.plan.plan import Plan
from protocol.plan.targets import targets_of
from protocol.plan.terms import Terms
from protocol.privacy.layout import Layout
from protocol.privacy.usefulness import useful_degree
from protocol.privacy.wavelets import MANY
from protocol.stages.methods import METHODS, terms_of
from protocol.stages.registry import stage_of
from protocol.tables.dependence import STRONG
from protocol.tables.domain import Domain
from protocol.tables.encoding import Encoding
from protocol.tables.found_edges import asking, counted
from protocol.tables.schema import Schema
from protocol.views.cover import most_in_views

MOST_IN_TURNS = 4  # pairs picked in all turns, for each variable
FEWEST_MEMBERS, MOST_MEMBERS = 2, 1000
MOST_CHARGES = 1 << 18  # members times variables: a method may have a step for every variable, which charges everybody
MOST_VARIABLES = 4096  # a number for each pair of them takes 128 MiB
MOST_SETS = 25_000  # of three attributes: for 10^5 rows 2 s of work with two values each, 20 s with eight
_SCORE_M = "score M picks pair by pair: it goes with method guided or update=turns, and they with it"


def agree(plan: Plan, schema: Schema, smallest_key: int = SMALLEST_BITS, fewest: int = FEWEST_MEMBERS) -> Terms:
    """The terms, if the plan can be run and costs nobody more than epsilon.

    Only tests lower `smallest_key`, and only simulations lower `fewest`: 1 party alone is a central baseline.
    """
    _check_parties(plan, fewest)
    _check_people(plan)
    _check_budget(plan)
    _check_lists(plan)
    if plan.schema_hash != schema.hash:
        raise PlanError(
            f"the plan is for the schema {plan.schema_hash[:12]}..., this one is {schema.hash[:12]}...: use one schema"
        )
    if plan.key_bits < smallest_key:
        raise PlanError(f"a Paillier key of {plan.key_bits} bits is too small: take 3072, or at least {smallest_key}")
    if plan.key_bits > LARGEST_BITS:
        raise PlanError(f"a Paillier key of {plan.key_bits} bits is too large: take 3072, or at most {LARGEST_BITS}")
    # The steps follow from a plan whose parts go together: none are worked out before that is known.
    _check_edges(plan, schema)
    domain = Encoding.of(counted(schema, plan.edges), plan.encoding).domain
    _check_size(plan, domain)
    _check_method(plan, domain)
    _check_dependence(plan, domain)
    _check_sets(plan, schema)
    terms = terms_of(plan, schema)
    _check_noise_shape(terms)
    _check_prices(terms)
    _check_degree(terms)
    _check_noise(terms)
    return terms


def _check_parties(plan: Plan, fewest: int) -> None:
    names = [member.name for member in plan.members]
    if len(names) < fewest:
        raise PlanError(f"{len(names)} party is too few: a run needs at least {fewest} parties")
    if len(names) > MOST_MEMBERS:
        raise PlanError(f"the plan has {len(names):,} parties, at most {MOST_MEMBERS:,} can run it: leave some out")
    if len(set(names)) < len(names):
        raise PlanError("two parties have the same name: every party needs a name of its own")
    keys = [key for member in plan.members for key in (member.signing_key, member.exchange_key)]
    if len(set(keys)) < len(keys):
        raise PlanError(
            "a key is listed twice in the roster: every party needs a signing and an exchange key of its own"
        )
    for member in plan.members:
        if member.name == CURATOR:
            raise PlanError(
                f"a party is called {CURATOR!r}: choose another name, because errors use this name for the curator"
            )
        for what, check, key in (
            ("signing", check_signing, member.signing_key),
            ("exchange", check_exchange, member.exchange_key),
        ):
            try:
                check(key)
            except MalformedKey as error:
                raise PlanError(f"the {what} key of {member.name} is improper: {error}") from None
    if plan.insiders > len(names) - 1:
        raise PlanError(
            f"{plan.insiders} insiders among {len(names)} parties leave nobody to protect: at most {len(names) - 1}"
        )


def _check_people(plan: Plan) -> None:
    """Refuse a plan that does not protect all rows of a person."""
    for member in plan.members:
        if (member.rows_per_person or 1) > plan.rows_per_person:
            raise PlanError(
                f"{member.name} has up to {member.rows_per_person} rows per person, the plan protects "
                f"{plan.rows_per_person}: ask for rows_per_person={member.rows_per_person}, or for an offer of fewer"
            )
    if plan.parties_per_person > plan.parties:
        raise PlanError(
            f"parties_per_person is {plan.parties_per_person}, and the plan has {plan.parties} parties: nobody can "
            "have rows at more"
        )
    if plan.parties_per_person > 1 and plan.rule == "replace":
        raise PlanError(
            "update=replace is priced for persons with rows at one party: choose another update rule, or "
            "parties_per_person=1"
        )


def _check_budget(plan: Plan) -> None:
    parts = METHODS[plan.method].budgets
    if plan.epsilon <= 0:
        raise PlanError(f"epsilon is {plan.epsilon}: it must be positive")
    plan.definition.check_delta(plan.delta, plan.total_rows)
    if len(plan.split) != len(parts):
        raise PlanError(
            f"the split has {len(plan.split)} budgets, but {plan.method} needs {len(parts)} ({', '.join(parts)})"
        )
    for part, share in zip(parts, plan.split, strict=True):
        if share < 0:
            raise PlanError(f"the budget of {part!r} is {share}: it must not be negative")
    if not plan.split[-1]:
        raise PlanError("the budget of 'parameters' is 0: without it there are no tables to sample from")
    if plan.method == "independent" and not plan.split[0]:
        raise PlanError("the budget of 'structure' is 0: method independent picks its networks with it")
    if min(plan.theta, plan.frontier_theta) <= 0:
        raise PlanError("theta must be positive: it says how many times more information than noise a table must carry")


def _check_lists(plan: Plan) -> None:
    """Refuse lists of other parties than the plan's: the steps of a run are worked out from them."""
    if len(plan.picks) != plan.parties:
        raise PlanError(f"the plan has picks of {len(plan.picks)} parties: give each of its {plan.parties} a number")
    if len(plan.further) not in (0, plan.parties):
        raise PlanError(
            f"the plan has further pairs of {len(plan.further)} parties: give each of its {plan.parties} a number"
        )


def _check_edges(plan: Plan, schema: Schema) -> None:
    """Refuse a part for edges that nothing can be found with."""
    if not plan.edges:
        return
    if not asking(schema):
        raise PlanError("no attribute of the schema has `find`: give a number of bins there, or no part for edges")
    if plan.method not in ("dp-subn", "guided") or plan.encoding != "native" or not plan.split[0]:
        raise PlanError(
            "edges are found before the first pass over whole attributes: choose method dp-subn or guided with "
            "encoding native and a budget for their first phase, or no part for edges"
        )


def _check_dependence(plan: Plan, domain: Domain) -> None:
    """Refuse a question about dependence whose answer decides nothing."""
    if not plan.dependence and not plan.alone_below:
        return
    if not (0 < plan.dependence < 1 and plan.edges + plan.dependence < 1 and 0 < plan.alone_below < STRONG):
        raise PlanError(
            f"a part of {plan.dependence} for dependence and a bound of {plan.alone_below} make no question: choose "
            f"a part between 0 and 1 and a bound between 0 and {STRONG}, or neither"
        )
    if not (plan.picks_pairs and plan.views == "pairs" and plan.split[0]) or domain.count < 2:
        raise PlanError(
            "dependence is asked for before views of all pairs: choose views=pairs with method guided or update=turns "
            "and a budget for the first phase, or no part for dependence"
        )


def _check_noise_shape(terms: Terms) -> None:
    """Refuse wavelets where no column alone is counted, or none has values enough for them."""
    if terms.plan.noise_shape == "cells":
        return
    if terms.plan.encoding != "native" or all(step.stage != "levels" for step in terms.steps):
        raise PlanError(
            "noise_shape=wavelet is for whole columns that are counted alone, and this plan does not count them so: "
            "choose method guided with encoding native, or noise_shape=cells"
        )
    if not terms.wavelets:
        raise PlanError(
            f"noise_shape=wavelet is for columns with {MANY} or more values that have an order or a taxonomy, and the "
            "schema has none: choose noise_shape=cells"
        )


def _check_sets(plan: Plan, schema: Schema) -> None:
    """Refuse targets and sets of three where nothing is picked by them, and more sets than can be looked at."""
    if plan.target and not plan.picks_pairs:
        raise PlanError("a target is for private choices by score M: choose method guided, or leave the target out")
    if plan.ways == 2:
        targets_of(plan.target, schema.names)
        return
    if plan.method != "guided" or plan.views != "single":
        raise PlanError("sets of three are picked by method guided with views=single alone: choose these, or ways=2")
    found, count = targets_of(plan.target, schema.names), len(schema.attributes)
    offered = sum(1 if len(one) > 2 else comb(count - len(one), 3 - len(one)) for one in found) or comb(count, 3)
    if offered > MOST_SETS:
        raise PlanError(
            f"{offered:,} sets of three would have to be looked at, at most {MOST_SETS:,} can be: give a target, leave "
            "attributes out of the schema, or choose ways=2"
        )


def _check_size(plan: Plan, domain: Domain) -> None:
    """Refuse more variables than anybody can work with, before anything is worked out for each pair of them."""
    count = domain.count
    what = f"the plan has {count:,} variables (encoding {plan.encoding})"
    if count > MOST_VARIABLES:
        raise PlanError(
            f"{what}, and at most {MOST_VARIABLES:,} are possible: choose encoding native, or leave attributes out of "
            "the schema"
        )
    if (charges := count * plan.parties) > MOST_CHARGES:
        raise PlanError(
            f"{what} and {plan.parties:,} parties, whose product {charges:,} is more than {MOST_CHARGES:,}: leave "
            "attributes out of the schema, or parties out of the plan"
        )
    if plan.method not in ("dp-subn", "guided", "jtree") or plan.views == "single" or not plan.split[0]:
        return
    sizes = (2,) * count if plan.views == "halves" else domain.sizes[:count]
    if count > (most := most_in_views(sizes, plan.cover_objective, plan.cover_budgets)):
        raise PlanError(
            f"{what}, and views of all pairs are worked out for at most {most:,}: choose another method or "
            "update=turns, or leave attributes out of the schema"
        )


def _check_method(plan: Plan, domain: Domain) -> None:
    if plan.score == "F" and not domain.is_binary:
        raise PlanError("score F is defined for binary variables only: choose score R, or encoding binary or gray")
    if sum(plan.picks) != domain.count:
        raise PlanError(
            f"the parties' picks {plan.picks} do not add up to the {domain.count} variables of {plan.parties} parties"
        )
    if plan.score == "M" and not plan.picks_pairs:
        raise PlanError(_SCORE_M)
    if plan.merging and not (plan.picks_pairs and plan.views != "pairs"):
        raise PlanError(
            "categories are merged by the counts of single variables, before pairs are picked: choose method guided or "
            "update=turns, with views=single or halves, or merging=false"
        )
    _check_estimate(plan)
    if plan.method == "jtree" and plan.views == "single":
        raise PlanError("method jtree takes its pairs from views: choose views=pairs or halves")
    if plan.method not in ("dp-subn", "guided"):
        return
    _check_model(plan, domain.count)
    e1, _, e3, _ = plan.split
    if e3 and not e1:
        raise PlanError("updates need correlations: give 'correlations' a budget, or 'frontier and updates' none")
    if e3 and plan.rule == "replace" and plan.insiders:
        raise PlanError(
            "update=replace protects nobody against other parties, because the party whose noise is kept can subtract "
            "it: choose update=accumulate, or insiders=0 if you trust every party"
        )


def _check_estimate(plan: Plan) -> None:
    """Refuse an estimate that does not fit what is counted."""
    if (plan.picks_pairs or plan.views != "pairs") and plan.estimate != "graphical-model":
        raise PlanError("tables of pairs or single columns need a model of all: choose estimate=graphical-model")
    if plan.estimate == "graphical-model" and plan.encoding != "native":
        raise PlanError(f"a graphical model needs whole attributes: choose encoding native, not {plan.encoding}")


def _check_model(plan: Plan, variables: int) -> None:
    """Refuse plans whose score, update rule, views and estimate do not go together."""
    if plan.picks_pairs != (plan.score == "M"):
        raise PlanError(_SCORE_M)
    if plan.method == "dp-subn" and plan.rule is None:
        raise PlanError(f"method dp-subn needs an update rule: choose one of {', '.join(get_args(Update))}")
    if plan.views == ("halves" if plan.method == "guided" else "single") and variables > 1:
        raise PlanError(f"method {plan.method} has no views={plan.views}: choose another")
    if not plan.picks_pairs:
        return
    if not plan.split[0]:
        raise PlanError("picks by the model need a first model: give 'correlations' a budget")
    most = variables * (1 if plan.method == "guided" else MOST_IN_TURNS) if variables > 1 else 0
    if len(plan.further) != plan.parties or max(plan.further) > variables or sum(plan.further) > most:
        raise PlanError(
            f"further pairs {plan.further} do not fit {plan.parties} parties and {variables} variables: give "
            f"every party a number, together at most {most}"
        )
    if plan.picks_in_turns and plan.split[2] and not any(plan.further):
        raise PlanError("turns need pairs to pick: give a party further pairs, or 'frontier and updates' no budget")


def _check_prices(terms: Terms) -> None:
    plan = terms.plan
    prices = [terms.price(party) for party in range(plan.parties)]
    if max(prices) <= plan.epsilon:
        return
    dearest = prices.index(max(prices))
    what = f"this plan costs {plan.members[dearest].name} {max(prices)}, more than epsilon = {plan.epsilon}"
    if plan.rule == "replace" and plan.split[2]:
        raise PriceError(f"{what}: {_why_replace_costs(plan)}")
    raise PriceError(f"{what}: lower the budgets {', '.join(map(str, plan.split))}, or raise epsilon")


def _why_replace_costs(plan: Plan) -> str:
    e1, e2, _, e4 = plan.split
    largest = max(Fraction(0), (plan.epsilon - e1 - e2 - e4) / plan.parties)
    return (
        f"with update=replace the first party's rows are released {plan.parties} times under fresh noise, which the "
        f"paper's theorem 5 counts once; the largest budget for 'frontier and updates' that fits is {largest}, "
        "or choose update=accumulate, which releases every row once"
    )


def _check_degree(terms: Terms) -> None:
    plan, domain = terms.plan, terms.domain
    if plan.degree is None:
        return
    is_alone = plan.method == "independent"
    rows = min(m.rows for m in plan.members) if is_alone else plan.total_rows
    budget = (plan.alone if is_alone else plan.in_sums)(plan.split[-1])
    if domain.is_binary:
        affordable = useful_degree(rows, domain.count, budget, Fraction(1), plan.definition, plan.family_tables)
    else:
        cells = plan.definition.useful_cells(rows, domain.count, budget, Fraction(1))
        affordable = Limits(cells).most_parents(domain.sizes[: domain.count])
    if plan.degree > affordable:
        raise PlanError(
            f"degree {plan.degree} cannot be afforded: with {rows} rows and {plan.split[-1]} for 'parameters', "
            f"tables beyond degree {affordable} hold more noise than information"
        )
    if terms.limits.degree != plan.degree:
        raise PlanError(
            f"degree {plan.degree} means too many families to compare: choose degree {terms.limits.degree} or less"
        )


def _check_noise(terms: Terms) -> None:
    """Refuse noise that is too wide: out of its sampler's reach, or in totals that do not fit where they are added."""
    for step in terms.steps[1:]:
        stage = stage_of(terms, step)
        rate = stage.narrowest_rate(terms, step) if step.budget else None
        if rate is None:
            continue
        try:
            if stage.is_sum:
                terms.plan.noise_mode.check_reach(Layout((1,), (rate,), terms.plan.total_rows))
            else:
                terms.plan.definition.bound(rate)
        except NoiseOutOfReach as error:
            raise PlanError(f"the noise of {step.name!r} is too wide: {error}") from error

"""Reasons for a plan's settings, in words for people who weigh it, derived again from the plan's public numbers.

It does not know rows, and it decides nothing: `protocol.plan.presets` and `protocol.plan.tuning` do.
"""

from collections.abc import Iterator
from fractions import Fraction
from math import comb
from statistics import fmean

from protocol.plan.plan import Plan, Weighed
from protocol.plan.terms import Terms
from protocol.plan.tuning import Tuning, tuned
from protocol.tables.found_edges import asking

_METHODS = {
    "privbayes": "the parties place the columns in a network, one party after the other, by private choices, and all "
    "count the network's tables; nothing was tuned to this schema",
    "privabn": "the parties place the columns in a network, one party after the other: each family grows parent by "
    "parent by private choices, until a parent seems not worth its noise; all count the network's tables",
    "jtree": "noisy views tell which pairs of columns depend on each other; all parties count the groups of "
    "columns in a junction tree of these pairs, merged so that their tables hold least noise",
    "dp-ccbn": "the parties count every table by which another column could join the network, and the curator takes "
    "the table that seems strongest; nothing was tuned to this schema",
    "independent": "every party models its own rows alone, with all of epsilon and a full share of noise",
}
_MANY = 200  # columns
_MOST_NAMED = 10
_PHASES = ("counting {first}", "choosing pairs privately", "counting the pairs chosen first", "counting {last}")
_CLASSICAL = ("correlations", "the first network", "the updates", "the last tables")


def reasons(terms: Terms) -> tuple[str, ...]:
    plan = terms.plan
    if plan.method in _METHODS:
        about = (*_about_wavelets(terms), *_about_size(terms), *_about_persons(plan))
        return (*_recommendation(plan), _sentence(_METHODS[plan.method]), *about)
    return (
        *_recommendation(plan),
        _about_budget(terms),
        *_about_use(plan),
        *_about_edges(terms),
        *_about_dependence(plan),
        *_about_wavelets(terms),
        *_about_size(terms),
        _sentence(_division(plan)),
        _sentence(_about_noise(plan)),
        *_about_persons(plan),
    )


def _recommendation(plan: Plan) -> tuple[str, ...]:
    """Why this method was recommended, if it was."""
    if not plan.weighed:
        return ()
    found = "; ".join(f"{one.method} {_expected(one)}" for one in plan.weighed)
    return (f"Method {plan.method} is recommended here: {found}.",)


def _about_persons(plan: Plan) -> tuple[str, ...]:
    """What it costs that a person may have several rows, or rows at several parties."""
    rows, parties = plan.rows_per_person, plan.parties_per_person
    if rows == parties == 1:
        return ()
    return (
        f"A person may have {rows} row{'s' * (rows > 1)} at each of {parties} part{'ies' if parties > 1 else 'y'}, so "
        f"the noise has to hide {rows * parties} rows of a person instead of 1.",
    )


def _about_wavelets(terms: Terms) -> Iterator[str]:
    """Say which columns have their noise in wavelets, and what counts of ranges gain by it."""
    if not terms.wavelets:
        return
    named = [terms.schema.names[place] for place in terms.wavelets]
    more = f" and of {len(named) - _MOST_NAMED} more columns" if len(named) > _MOST_NAMED else ""
    gain = fmean(wavelet.gain(terms.plan.definition) for wavelet in terms.wavelets.values())
    yield (
        f"The noise of {', '.join(named[:_MOST_NAMED])}{more} lies in wavelets: in the count of a range or a group its "
        f"variance is on average {gain:.2g} times that of noise in every count, and in a single count it is larger."
    )


def _expected(one: Weighed) -> str:
    if one.error is None:
        return f"has no predicted error ({one.why})"
    return f"is predicted to be off by {float(one.error):.3g}"


def _about_budget(terms: Terms) -> str:
    plan = terms.plan
    if plan.preset == "paper":
        return "The settings are the paper's, at the price that they really cost."
    if not plan.picks_pairs:
        return "The phases count whole families of a network, as requested; they are not tuned to this schema."
    found = _tuning(terms)
    if not _is_of(plan, found):
        return "The budget is divided as requested, not as tuned to this schema."
    counted = "" if terms.domain.count < 2 else f"{_what_is_counted(plan)} "
    return f"{counted}{_sentence(found.why)}"


def _about_use(plan: Plan) -> Iterator[str]:
    """Say what follows from what the table is for."""
    if plan.target:
        yield f"Private choices count sets of columns for {plan.target} in full, and others half."
    if plan.ways > 2:
        yield (
            "Sets of three columns are offered too, and picked where their dependence is worth their noise: that finds "
            "what shows in no pair, and leaves less for pairs."
        )


def _about_edges(terms: Terms) -> Iterator[str]:
    """Say what finding edges costs, and for whom."""
    if not terms.plan.edges:
        return
    named = [f"{one.find} bins of {one.name} from {one.categories:,}" for one in asking(terms.agreed).values()]
    more = f" and of {len(named) - _MOST_NAMED} more columns" if len(named) > _MOST_NAMED else ""
    yield (
        f"{float(terms.plan.edges):.3g} of the budget finds edges where rows lie: {', '.join(named[:_MOST_NAMED])}"
        f"{more}. The edges follow from noisy counts and are published."
    )


def _about_dependence(plan: Plan) -> Iterator[str]:
    """Say why it is asked how strongly columns depend, and what follows from the answer."""
    if plan.dependence:
        left = "the published columns are independent"
        if any(plan.further):
            left = "but for pairs that parties pick later, the published columns are independent"
        yield (
            f"Views of many columns bring much noise, which pays only if columns depend on each other. So "
            f"{float(plan.dependence):.3g} of the budget finds out first: where pairs depend within the parties' own "
            f"rows by less than {float(plan.alone_below):.2g} of the rows on average, beyond chance, and none "
            f"strongly, every column is counted alone instead, and {left} of each other."
        )


def _about_size(terms: Terms) -> Iterator[str]:
    """Say what to expect of very many columns."""
    count, plan = len(terms.schema.attributes), terms.plan
    if count <= _MANY:
        return
    counted = "tables of few columns are counted"
    if plan.picks_pairs and plan.views != "pairs":
        most = count - 1 + max(1, plan.guided_rounds) * sum(plan.further)
        counted = f"at most {most:,} of their {comb(count, 2):,} pairs are counted"
    yield (
        f"{count:,} columns are very many: they share one budget, so that each count holds more noise than with fewer, "
        f"and {counted}. Relationships between all other columns are lost. Every party works for minutes with 300 "
        "columns and for far longer with 1,000. Leave out of the schema what nobody will look at."
    )


def _what_is_counted(plan: Plan) -> str:
    if plan.picks_in_turns:
        return _five_phases(plan)
    if plan.views == "pairs":
        return "With this budget every pair of columns can be counted, several pairs at a time in views."
    tree = "a tree of pairs is counted where a pair is worth its noise"
    if not plan.guided_rounds:
        return f"With this budget only single columns can be counted well; besides them, {tree}."
    again = f" in each of {plan.guided_rounds} rounds" if plan.guided_rounds > 1 else ""
    return (
        f"With this budget every column alone is counted, and {tree}. Then{again} up to {sum(plan.further)} further "
        "pairs are counted: those that the model so far reproduces worst."
    )


def _five_phases(plan: Plan) -> str:
    """What each of DP-SUBN's phases counts or picks."""
    turns = sum(map(bool, plan.further))
    each = f"{turns} parties in turn pick up to {sum(plan.further)} pairs in the search frontier, and all count them"
    if plan.views == "pairs":
        return (
            "With this budget every pair of columns can be counted, several at a time in views. The first network "
            f"and the updates get what they are worth beside that: {each}."
        )
    return (
        "Every column is counted alone, and views of halves of columns measure how strongly pairs depend. "
        f"The parties place the first network, all count its pairs, then {each}."
    )


def _tuning(terms: Terms) -> Tuning:
    plan, sizes = terms.plan, terms.domain.sizes[: terms.domain.count]
    budget, rows = sum(plan.split, Fraction(0)), [member.rows for member in plan.members]
    return tuned(plan.method, sizes, rows, plan.in_sums(budget), plan.definition, plan.insiders, plan.ways)


def _is_of(plan: Plan, found: Tuning) -> bool:
    split = found.split(sum(plan.split, Fraction(0)))
    return (plan.views, plan.split, plan.further) == (found.views, split, found.further)


def _division(plan: Plan) -> str:
    whole = sum(plan.split, Fraction(0))
    if plan.method == "dp-subn":
        shares = [
            f"{_percent(share / whole)} for {word}" for share, word in zip(plan.split, _CLASSICAL, strict=True) if share
        ]
        return f"the budget is divided: {', '.join(shares)}"
    first = "all pairs by views" if plan.views == "pairs" else "every column alone"
    last = "the pairs chosen last" if plan.guided_rounds else "the pairs chosen" if plan.split[1] else "what is left"
    words = [word.format(first=first, last=last) for word in _PHASES]
    shared = [f"{_percent(share / whole)} for {word}" for share, word in zip(plan.split, words, strict=True) if share]
    return f"the budget is divided: {', '.join(shared)}"


def _percent(share: Fraction) -> str:
    return f"{float(100 * share):.3g} %"


def _about_noise(plan: Plan) -> str:
    kept = f"in every total, noise mode {plan.noise} keeps {plan.noise_mode.kept}"
    return f"{kept}; {_protected(plan)}{plan.definition.about_noise}"


def _protected(plan: Plan) -> str:
    if not plan.insiders:
        return "nobody is protected from a party that takes its own noise out"
    others = "any 1 insider" if plan.insiders == 1 else f"any {plan.insiders} insiders together"
    return f"at least one full share stays hidden from {others}"


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."

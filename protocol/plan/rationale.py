"""Why a plan is as it is, in words for whoever weighs it: worked out again from the plan's public numbers.

It does not know rows, and it decides nothing: `protocol.plan.presets` and `protocol.plan.tuning` do.
"""

from fractions import Fraction

from protocol.plan.plan import Plan
from protocol.plan.terms import Terms
from protocol.plan.tuning import Tuning, tuned

_METHODS = {
    "dp-ccbn": "the parties count all tables that a next attribute could be joined with, and the curator takes the one "
    "that seems strongest: nothing was tuned to this schema",
    "independent": "every party models its own rows alone, with all of epsilon and all the noise that goes with it",
}
_PHASES = ("counting {first}", "choosing pairs privately", "counting the pairs chosen first", "counting {last}")
_CLASSICAL = ("measuring correlations", "choosing the first network", "updating the network", "counting its tables")


def reasons(terms: Terms) -> tuple[str, ...]:
    plan = terms.plan
    if plan.method != "dp-subn":
        return (_sentence(_METHODS[plan.method]),)
    return (_sentence(_about_budget(terms)), _sentence(_division(plan)), _sentence(_about_noise(plan)))


def _about_budget(terms: Terms) -> str:
    plan = terms.plan
    if plan.preset == "paper":
        return "the settings are those of the paper, at what they truly cost"
    if plan.score != "M":
        return "the phases are the paper's with better settings, as was asked for: they are not tuned to this schema"
    found = _tuning(terms)
    if not _is_of(plan, found):
        return "the budget is divided as was asked for, not as it was tuned"
    return found.why if terms.domain.count < 2 else f"{_what_is_counted(plan)} ({found.why})"


def _what_is_counted(plan: Plan) -> str:
    if plan.views == "pairs":
        return "every pair of attributes is counted, several at once in views: the budget bears their noise"
    tree = "every attribute alone, and a tree of pairs where one is worth its noise"
    if not plan.guided_rounds:
        return f"the budget bears the noise of few tables: {tree}"
    again = f" in each of {plan.guided_rounds} rounds" if plan.guided_rounds > 1 else ""
    return f"the budget bears {tree}, and{again} {sum(plan.further)} more pairs that these answer worst"


def _tuning(terms: Terms) -> Tuning:
    plan, sizes = terms.plan, terms.domain.sizes[: terms.domain.count]
    budget = sum(plan.split, Fraction(0))
    return tuned(sizes, [member.rows for member in plan.members], budget, plan.definition, plan.insiders)


def _is_of(plan: Plan, found: Tuning) -> bool:
    split = found.split(sum(plan.split, Fraction(0)))
    return (plan.views, plan.split, plan.further) == (found.views, split, found.further)


def _division(plan: Plan) -> str:
    whole = sum(plan.split, Fraction(0))
    first = "all pairs by views" if plan.views == "pairs" else "every attribute alone"
    last = "the pairs chosen last" if plan.guided_rounds else "the pairs chosen" if plan.split[1] else "what is left"
    words = [word.format(first=first, last=last) for word in (_PHASES if plan.score == "M" else _CLASSICAL)]
    shared = [f"{_percent(share / whole)} {word}" for share, word in zip(plan.split, words, strict=True) if share]
    return f"the budget pays for: {', '.join(shared)}"


def _percent(share: Fraction) -> str:
    return f"{float(100 * share):.3g} %"


def _about_noise(plan: Plan) -> str:
    kept = f"noise mode {plan.noise} keeps {plan.noise_mode.kept} in every sum"
    return f"{kept}, so that {_protected(plan)}{plan.definition.about_noise}"


def _protected(plan: Plan) -> str:
    if not plan.insiders:
        return "nobody is protected from a party that takes its own noise out"
    return f"one full share stays hidden from any {plan.insiders} insider{'s' if plan.insiders > 1 else ''}"


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."

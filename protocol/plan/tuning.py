"""Division of a budget by the recommended preset: from public numbers alone, with the reason in words.

It does not know rows or networks. The thresholds were chosen on Adult and NLTCS; ACS and Retail were held out.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, combinations_with_replacement
from math import comb, floor, sqrt

from protocol.exact import allocate, proportional_counts
from protocol.options import Method
from protocol.plan.typical_tables import noise_left, typical_size
from protocol.privacy.mechanisms import PrivacyDefinition
from protocol.views.cover import MOST_SEARCHED, Budgets, cover

Shares = tuple[Fraction, ...]
# Thresholds of blur: the share of the rows that noise misplaces in a typical pair's table, if one table per variable is
# counted.
_POOR = 0.063
_RICH_IN_ROUNDS, _TOO_POOR_FOR_ROUNDS = 0.035, 0.105  # with zcdp; not measured above
_BLUR_OF_ONE_EACH, _BLUR_IN_ROUNDS = 0.02, 0.033  # with which as many further pairs are counted as there are variables
_ROOMY, _ROOMY_IN_ROUNDS = 0.031, 0.045  # for a model of very many numbers
_LARGEST_PAIR = 16  # cells; with larger pairs views cannot pay, and the search for them would take long
_LEAST_FOR_VIEWS, _MOST_FOR_VIEWS = 4, 99  # parts of the budget for views; the last pass gets one part
_NARROWEST_RATE = Fraction(1, 20_000)  # of Laplace noise in shares
_FEWEST_IN_TURNS = 2  # further pairs, however small the budget
_LEAST_PART = Fraction(1, 100)  # of the budget: for picks, and for all that is counted after them, beside views
_WIDTH_TO_SPARE = 4  # how many times narrower than the widest possible the noise beside views is
_ROOM, _RICH_ROOM = 1 << 15, 1 << 18  # numbers in all cliques of a model together
OF_HALVES = Fraction(1, 6)  # of phase 1's budget: views of halves, beside every variable alone
_VIEWS_PAY = 0.12  # expected distance of a pair's table from the true table, below which all pairs are counted


@dataclass(frozen=True)
class Tuning:
    views: str
    shares: Shares
    further: tuple[int, ...]
    why: str
    rounds: int = 1

    def split(self, budget: Fraction) -> tuple[Fraction, ...]:
        return tuple(share / sum(self.shares) * budget for share in map(Fraction, self.shares))


def tuned(
    method: Method,
    sizes: Sequence[int],
    rows: Sequence[int],
    budget: Fraction,
    definition: PrivacyDefinition,
    insiders: int,
    ways: int = 2,
) -> Tuning:
    """Division of the budget over the phases, assuming noise mode `distributed` if any party is no insider."""
    found = _guided(sizes, rows, budget, definition, insiders, ways)
    return found if method == "guided" or len(sizes) < 2 else _in_turns(found, len(sizes), rows, budget, definition)


def _guided(
    sizes: Sequence[int],
    rows: Sequence[int],
    budget: Fraction,
    definition: PrivacyDefinition,
    insiders: int,
    ways: int,
) -> Tuning:
    total, count = sum(rows), len(sizes)
    shares_of_noise = kept_shares(len(rows), insiders)
    if count < 2:
        return Tuning("single", _shares(1, 0, 0, 1), (0,) * len(rows), "a single column has no relationships to model")
    for_views = _parts_for_views(count, budget, definition)
    expected = pair_error(sizes, total, budget * Fraction(for_views, for_views + 1), definition, shares_of_noise)
    if expected <= _VIEWS_PAY and ways == 2:
        why = f"views count every pair to within {expected:.3f} of the rows, so no network has to be picked privately"
        return Tuning("pairs", _shares(for_views, 0, 0, 1), (0,) * len(rows), why)
    blur = _blur(sizes, total, budget, definition, shares_of_noise)
    if definition.grows_by_root and blur <= _TOO_POOR_FOR_ROUNDS:
        return _in_rounds(blur, count, rows)
    if blur > _POOR:
        why = f"{_blurs(blur)}, so single columns get three fifths of the budget and a tree of pairs gets the rest"
        return Tuning("single", _shares(12, 2, 0, 6), (0,) * len(rows), why)
    further = _further(count, blur, _BLUR_OF_ONE_EACH)
    why = f"{_blurs(blur)}, little enough for a tree of pairs and {further} further pairs"
    return Tuning("single", _shares(6, 2, 7, 5), proportional_counts(further, rows), why)


def room_of_model(
    sizes: Sequence[int], rows: Sequence[int], budget: Fraction, definition: PrivacyDefinition, insiders: int
) -> int:
    """The most numbers in a model: many take long to fit, and pay only where noise is small."""
    if len(sizes) < 2:
        return _ROOM
    blur = _blur(sizes, sum(rows), budget, definition, kept_shares(len(rows), insiders))
    return _RICH_ROOM if blur <= (_ROOMY_IN_ROUNDS if definition.grows_by_root else _ROOMY) else _ROOM


def _further(count: int, blur: float, one_each: float) -> int:
    """The number of further pairs in a round: fewer where noise blurs more, at most one for each variable."""
    return count if blur <= one_each else floor(count * one_each / blur)


def kept_shares(parties: int, insiders: int) -> float:
    """How many full shares of noise a sum holds, as far as insiders leave them."""
    return parties / (parties - insiders) if parties > insiders else 1.0


def _shares(*parts: int) -> Shares:
    return tuple(map(Fraction, parts))


def _in_turns(
    guided: Tuning, count: int, rows: Sequence[int], budget: Fraction, definition: PrivacyDefinition
) -> Tuning:
    """The five phases of DP-SUBN: the same parts for columns, picks and tables, with a turn for every party."""
    if guided.views == "pairs":
        return _beside_views(guided, rows, budget, definition)
    alone, picks, *tables = guided.shares
    further = proportional_counts(max(_FEWEST_IN_TURNS, sum(guided.further) * guided.rounds), rows)
    last = next(own for own in reversed(further) if own)
    whole = count - 1 + sum(further)
    parameters = sum(tables) * Fraction(last, whole)
    updates = (sum(tables) - parameters) + picks / 2
    shares = (alone / (1 - OF_HALVES), picks / 2, updates, parameters)
    return Tuning("halves", shares, further, guided.why)


def _beside_views(guided: Tuning, rows: Sequence[int], budget: Fraction, definition: PrivacyDefinition) -> Tuning:
    """DP-SUBN where views count every pair: the other phases get as little as their noise can be drawn for."""
    further = proportional_counts(len(rows), rows)
    each = _LEAST_PART / len(rows)
    if not definition.grows_by_root:
        each = max(each, _WIDTH_TO_SPARE * _NARROWEST_RATE / definition.rate(budget))
    last = each * next(own for own in reversed(further) if own)
    updates = each * sum(further) - last + _LEAST_PART
    views = 1 - _LEAST_PART - updates - last
    why = f"{guided.why.partition(',')[0]}, so that picks can find little more"
    return Tuning("pairs", (views, _LEAST_PART, updates, last), further, why)


def _blurs(blur: float) -> str:
    return f"noise misplaces about {100 * blur:.2g} % of the rows in a typical pair's table"


def _parts_for_views(count: int, budget: Fraction, definition: PrivacyDefinition) -> int:
    """Number of parts of the budget for views, when the last pass gets one part.

    With views the last pass can only count single variables again. Shares of Laplace noise are drawn from tables that
    grow with the width of the noise, so the noise of the last pass must stay within the reach of these tables.
    """
    if definition.grows_by_root:
        return _MOST_FOR_VIEWS
    widest = definition.rate(budget / count) / _NARROWEST_RATE
    return max(_LEAST_FOR_VIEWS, min(_MOST_FOR_VIEWS, floor(widest) - 1))


def _in_rounds(blur: float, count: int, rows: Sequence[int]) -> Tuning:
    """Division for zcdp, whose noise grows only with the root of the number of parts, so that more rounds pay."""
    if blur > _POOR:
        shares, further, rounds = _shares(7, 2, 6, 5), count // 3, 1
    else:
        shares, rounds = _shares(5, 2, 8, 5) if blur > _RICH_IN_ROUNDS else _shares(2, 2, 10, 6), 2
        further = _further(count, blur, _BLUR_IN_ROUNDS)
    often = "" if rounds == 1 else f" in each of {rounds} rounds"
    why = f"{_blurs(blur)}, little enough for a tree of pairs and {further} further pairs{often}"
    return Tuning("single", shares, proportional_counts(further, rows), why, rounds)


def pair_error(
    sizes: Sequence[int],
    rows: int,
    budget: Fraction,
    definition: PrivacyDefinition,
    shares_of_noise: float,
    budgets: Budgets = "equal",
) -> float:
    """Expected distance of a noisy pair's table from the true table, when views cover all pairs at this budget."""
    *_, second, largest = sorted(sizes)
    if second * largest > _LARGEST_PAIR or len(sizes) > MOST_SEARCHED:
        return 1.0
    found = cover(sizes, "expected-error", budgets)
    error = 0.0
    for view, cells, share in zip(found.views, found.view_cells, allocate(budget, found.weights), strict=True):
        variance = definition.variance(definition.rate(share)) * shares_of_noise
        for pair in combinations(view, 2):
            own = sizes[pair[0]] * sizes[pair[1]]
            error += own * definition.mean_size(variance * cells / own) / (2 * rows)
    return error / comb(len(sizes), 2)


def views_pay(
    sizes: Sequence[int], rows: Sequence[int], budget: Fraction, definition: PrivacyDefinition, insiders: int
) -> bool:
    """Whether views of all pairs count them well enough."""
    shares_of_noise = kept_shares(len(rows), insiders)
    return pair_error(sizes, sum(rows), budget, definition, shares_of_noise) <= _VIEWS_PAY


def _blur(
    sizes: Sequence[int], rows: int, budget: Fraction, definition: PrivacyDefinition, shares_of_noise: float
) -> float:
    """The mean over all pairs of the distance between a noisy table and the true one, for a typical table of rows.

    The count of an average cell does not tell it: in a large table most rows lie in few cells, which noise spares.
    """
    noise = sqrt(shares_of_noise) / max(1, definition.useful_cells(rows, len(sizes), budget, Fraction(1)))
    alike = Counter(map(typical_size, sizes))
    found = sum(
        (alike[one] * alike[other] if one != other else comb(alike[one], 2)) * noise_left((one, other), noise)
        for one, other in combinations_with_replacement(sorted(alike), 2)
    )
    return found / comb(len(sizes), 2)

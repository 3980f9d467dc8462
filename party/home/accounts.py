"""Accounts of the data sets in party.toml: one for each set of rows, whatever sections and names stand over it.

It does not know runs or how a charge comes about.

Sections over the same source share one account. So do sections that name the same budget. Privacy: a limit protects
people only if it counts all that was ever spent on their rows.
"""

from collections.abc import Iterator, Mapping
from itertools import combinations

from party.books.budget import Account, Amounts, Claims, added
from party.home.layout import Home
from party.home.settings import Dataset, Settings
from party.home.sources import Source, source_of

Sections = Mapping[str, Dataset]


def sources_in(home: Home, settings: Settings) -> dict[str, Source]:
    return {name: source_of(home, one) for name, one in settings.datasets.items()}


def accounts_of(sections: Sections, sources: Mapping[str, Source]) -> tuple[Account, ...]:
    """The accounts, in the order of their first sections."""
    return tuple(_account(sections, sources, group) for group in _groups(sections, sources))


def contradictions(sections: Sections, sources: Mapping[str, Source], accounts: tuple[Account, ...]) -> Iterator[str]:
    """What keeps the accounts from being clear, each with what to write into party.toml."""
    yield from _about_sources(sections, sources)
    yield from _about_names(sections)
    for account in accounts:
        limits = {(sections[name].epsilon_total, sections[name].delta_total) for name in account.datasets}
        if len(limits) > 1:
            yield (
                f"{_listed(account.datasets)} share one account, but their epsilon_total or delta_total differ: give "
                "all of them the same"
            )


def unclaimed_words(dataset: str, spent: Amounts) -> str:
    return (
        f"the ledger holds {_amounts(spent)} of {dataset!r}, which no section claims: write formerly = "
        f'["{dataset}"] into the section that reads those rows now; if no section does, write retired = '
        f'["{dataset}"] under [policy]'
    )


def _groups(sections: Sections, sources: Mapping[str, Source]) -> list[list[str]]:
    """Sections that share an account: chains of equal sources and equal budgets."""
    groups: list[list[str]] = []
    for name in sections:
        linked = [group for group in groups if any(_share(sections, sources, name, other) for other in group)]
        groups = [group for group in groups if group not in linked]
        groups.append([other for group in linked for other in group] + [name])
    order = list(sections)
    return sorted((sorted(group, key=order.index) for group in groups), key=lambda group: order.index(group[0]))


def _share(sections: Sections, sources: Mapping[str, Source], one: str, other: str) -> bool:
    budgets = sections[one].budget, sections[other].budget
    return sources[one].is_same(sources[other]) or (budgets[0] is not None and budgets[0] == budgets[1])


def _account(sections: Sections, sources: Mapping[str, Source], names: list[str]) -> Account:
    members = [sections[name] for name in names]
    budgets = [one.budget for one in members if one.budget is not None]
    claims = Claims(
        names=frozenset({*names, *budgets, *(former for one in members for former in one.formerly)}),
        sources=frozenset(sources[name].digest for name in names),
        budgets=frozenset(budgets),
    )
    limit = min(one.epsilon_total for one in members), min(one.delta_total for one in members)
    before = added(*((one.spent_before, one.delta_spent_before) for one in members))
    return Account(budgets[0] if budgets else names[0], claims, tuple(names), limit, before)


def _about_sources(sections: Sections, sources: Mapping[str, Source]) -> Iterator[str]:
    for one, other in combinations(sections, 2):
        named = sections[one].budget, sections[other].budget
        if sources[one].is_same(sources[other]) and None not in named and named[0] != named[1]:
            yield (
                f"{one} and {other} read the same rows, but name two budgets, {named[0]!r} and {named[1]!r}: "
                "the same rows have one budget; name the same in both"
            )
        alike = sources[one].likeness(sources[other]) if None in named else ""
        if alike:
            yield (
                f"{one} and {other} {alike}: if a person can be in both, write the same "
                'budget = "..." into both; if nobody can, write a budget = "..." of its own into each'
            )


def _about_names(sections: Sections) -> Iterator[str]:
    for name, one in sections.items():
        if one.budget is not None and one.budget in sections and sections[one.budget].budget != one.budget:
            yield f"{name} names the budget {one.budget!r}, which is the name of another section: choose another name"


def _amounts(spent: Amounts) -> str:
    return f"epsilon {spent[0]}" + (f" and delta {spent[1]}" if spent[1] else "")


def _listed(names: tuple[str, ...]) -> str:
    return " and ".join(names)

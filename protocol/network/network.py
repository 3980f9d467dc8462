"""Bayesian networks over a domain: families, the best network inside a frontier, and the tables its parameters need.

It does not know which party chose the families or whose rows the tables count.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from protocol.network.limits import Limits
from protocol.network.mutual_information import mutual_information
from protocol.options import FamilyTables
from protocol.tables.domain import Domain, Variables
from protocol.tables.marginal import Table, project_to_simplex


@dataclass(frozen=True)
class Family:
    """A base variable and its parents in rising order. A parent may be a variant of another base variable."""

    child: int
    parents: Variables = ()

    @property
    def variables(self) -> Variables:
        return (self.child, *self.parents)


@dataclass(frozen=True)
class Network:
    """Families ordered so that every parent's base variable comes before its children."""

    families: tuple[Family, ...]

    @classmethod
    def of(cls, families: Iterable[Family], domain: Domain) -> "Network":
        """Build the network of these families, given in any order. Raises ValueError if they do not form a network."""
        by_child: dict[int, Family] = {}
        for family in families:
            _check(family, domain)
            if family.child in by_child:
                raise ValueError(f"variable {family.child} has two families; a network gives each variable one family")
            by_child[family.child] = family
        for family in by_child.values():
            if not all(domain.base(parent) in by_child for parent in family.parents):
                raise ValueError(f"family {family.variables} has a parent that has no family itself")
        return cls(tuple(_in_order(by_child, domain)))

    def parents_of(self, child: int) -> Variables:
        return self._parents[child]

    def edges(self) -> list[tuple[int, int]]:
        """List (parent, child) pairs, children in the order of the network."""
        return [(parent, family.child) for family in self.families for parent in family.parents]

    @cached_property
    def _parents(self) -> dict[int, Variables]:
        return {family.child: family.parents for family in self.families}


def best_network(
    frontier: Network, statistics: Mapping[int, Table], totals: Mapping[int, float], limits: Limits, domain: Domain
) -> Network:
    """Choose, for every variable, the parent set inside the frontier with most information by the noisy statistics.

    `statistics[X]` is a table over X and its parents in the frontier, and `totals[X]` is the public number of rows in
    that table. Variables for which the frontier leaves no choice need neither.
    """
    families = []
    for family in frontier.families:
        candidates = maximal_parent_sets(family, limits, domain)
        if len(candidates) > 1:
            table = statistics[family.child]
            joint = Table(table.variables, project_to_simplex(table.counts, totals[family.child]))
            informations = [_information(joint, Family(family.child, parents), domain) for parents in candidates]
            candidates = [candidates[informations.index(max(informations))]]
        families.append(Family(family.child, candidates[0]))
    return Network(tuple(families))


def maximal_parent_sets(family: Family, limits: Limits, domain: Domain) -> list[Variables]:
    """Sets of the family's parents, possibly generalised, that are admitted and cannot grow.

    Mutual information never falls when a parent is added or made finer, so no other set can be better than the best
    of these sets.
    """
    levels = [_variants_from_coarse(parent, domain) for parent in family.parents]
    found = []
    for choice in _admitted(family.child, levels, (), limits, domain):
        finer = (
            (*choice[:place], level + 1, *choice[place + 1 :])
            for place, level in enumerate(choice)
            if level < len(levels[place])
        )
        if not any(limits.admits(domain, family.child, _parents_at(levels, grown)) for grown in finer):
            found.append(_parents_at(levels, choice))
    return found


def maximal_families(network: Network, domain: Domain) -> list[Variables]:
    """The variables of each family whose table cannot be derived from another's, in the network's order."""
    everything = [tuple(sorted(family.variables)) for family in network.families]
    return [
        own for own in everything if not any(other != own and _derivable(own, other, domain) for other in everything)
    ]


def counted_families(network: Network, domain: Domain, tables: FamilyTables) -> list[Variables]:
    """The variables of the tables from which the network's parameters follow, in the network's order."""
    if tables == "maximal":
        return maximal_families(network, domain)
    return [tuple(sorted(family.variables)) for family in network.families]


def family_table(family: Family, tables: Sequence[Table], domain: Domain) -> Table:
    """The family's table, child first, projected from the given table that yields the smallest variance."""
    projected = [table.project(family.variables, domain) for table in tables if table.covers(family.variables, domain)]
    if not projected:
        raise ValueError(f"none of the {len(tables)} tables covers variables {family.variables}")
    return min(projected, key=lambda table: table.variance)


def _check(family: Family, domain: Domain) -> None:
    child, parents = family.child, family.parents
    if not 0 <= child < domain.count:
        raise ValueError(f"variable {child} is a child, but the base variables are 0 to {domain.count - 1}")
    if list(parents) != sorted(set(parents)) or not all(0 <= p < len(domain.variables) for p in parents):
        raise ValueError(f"parents {parents} of variable {child} are not rising indices of the domain's variables")
    bases = [domain.base(p) for p in parents]
    if len({child, *bases}) != 1 + len(bases):
        raise ValueError(f"family {family.variables} uses one base variable twice")


def _in_order(families: Mapping[int, Family], domain: Domain) -> Iterator[Family]:
    """Order families so that parents come first: the first family whose parents are all placed comes next.

    An order that is already valid stays as it is.
    """
    waiting = dict(families)
    while waiting:
        free = next((f for f in waiting.values() if not any(domain.base(p) in waiting for p in f.parents)), None)
        if free is None:
            raise ValueError(f"the families of variables {sorted(waiting)} form a cycle; a network has none")
        yield waiting.pop(free.child)


def _variants_from_coarse(parent: int, domain: Domain) -> Variables:
    """The variants of this parent from its coarsest generalisation to the parent itself."""
    variants = domain.variants[domain.base(parent)]
    return variants[variants.index(parent) :][::-1]


def _admitted(
    child: int, levels: Sequence[Variables], chosen: Variables, limits: Limits, domain: Domain
) -> Iterator[Variables]:
    """All admitted choices of a level for each parent (0: left out), earlier parents and finer levels first."""
    if len(chosen) == len(levels):
        yield chosen
        return
    for level in range(len(levels[len(chosen)]), -1, -1):
        longer = (*chosen, level)
        if limits.admits(domain, child, _parents_at(levels, longer)):
            yield from _admitted(child, levels, longer, limits, domain)


def _parents_at(levels: Sequence[Variables], choice: Variables) -> Variables:
    return tuple(sorted(variants[level - 1] for variants, level in zip(levels, choice, strict=False) if level))


def _information(joint: Table, family: Family, domain: Domain) -> float:
    counts = joint.project(family.variables, domain).counts
    return mutual_information(counts.reshape(domain.sizes[family.child], -1))


def _derivable(wanted: Variables, source: Variables, domain: Domain) -> bool:
    finest = {domain.base(v): domain.sizes[v] for v in source}
    return all(domain.sizes[v] <= finest.get(domain.base(v), 0) for v in wanted)

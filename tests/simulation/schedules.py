"""Schedules: what goes wrong in a simulated run, when, and where; drawn by a number, and made simpler one by one.

It does not know how a fault is brought about (`tests.simulation.world`), or what must not follow
(`tests.simulation.verdicts`).

Places are counted: a party's first request, the curator's third commit. A place that a run never reaches makes a fault
that never happens.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from random import Random
from typing import Any, Literal, get_args

CURATOR = "curator"

Leg = Literal["request", "answer"]
Edge = Literal["before", "torn", "after"]
Effect = Literal["commit", "checkpoint", "append", "cut", "rename", "sync", "ask", "serve"]
ON_DISK = ("commit", "append", "rename", "sync")  # effects that a full disk can refuse
Spoiling = Literal["body", "signature", "status", "bad gateway"]
Rule = Literal["ask", "per run", "total", "noise", "renamed", "stranger", "rows", "bad row", "values"]
Word = Literal["accept", "refuse", "nothing"]


@dataclass(frozen=True)
class Way:
    """A kind of run: its parties, what the operator wishes for its plan, and what only a planner may say in it."""

    parties: int
    wishes: Mapping[str, object]
    tuning: Mapping[str, Any] = field(default_factory=dict)
    often: int = 1  # how many times as often as others it is tried, because it takes little time


def _dp_subn(parties: int, noise: str, update: str, often: int = 1, **more: object) -> Way:
    return Way(parties, {"method": "dp-subn", "noise": noise, "update": update, **more}, often=often)


def _guided(parties: int, noise: str, **more: object) -> Way:
    """A run that picks pairs privately in every round, however few rows there are."""
    quarters = {"split": ["5", "5", "5", "5"], "rounds": 1}
    return Way(
        parties, {"method": "guided", "noise": noise, **quarters, **more}, {"views": "single", "further": (1, 1)}
    )


_ZCDP = {"privacy": "zcdp", "delta": "1e-6"}
WAYS: Mapping[str, Way] = {
    "parameters alone": _dp_subn(2, "distributed", "accumulate", 8, split=["0", "0", "0", "20"]),
    "turns, distributed": _dp_subn(3, "distributed", "turns"),
    "turns, selected": _dp_subn(2, "selected", "turns", epsilon="4"),
    "turns, local": _dp_subn(2, "local", "turns"),
    "accumulate, distributed": _dp_subn(3, "distributed", "accumulate"),
    "accumulate, selected": _dp_subn(2, "selected", "accumulate"),
    "joint, local": _dp_subn(2, "local", "joint"),
    "joint, selected": _dp_subn(3, "selected", "joint", rounds=1),
    "replace, local": _dp_subn(2, "local", "replace", preset="paper", insiders=0),
    "replace, selected": _dp_subn(2, "selected", "replace", preset="paper", insiders=0),
    "guided, distributed": _guided(2, "distributed"),
    "guided, selected": _guided(2, "selected"),
    "guided, asking": Way(
        2,
        {"method": "guided", "noise": "distributed", "split": ["9", "0", "0", "9"], "rounds": 1},
        {"views": "pairs", "further": (0, 0), "dependence": Fraction(1, 10), "alone_below": Fraction(1, 10)},
    ),
    "guided, local": Way(2, {"method": "guided", "noise": "local"}, often=2),
    "dp-ccbn, distributed": Way(2, {"method": "dp-ccbn", "noise": "distributed", "degree": 1}),
    "dp-ccbn, selected": Way(2, {"method": "dp-ccbn", "noise": "selected", "degree": 1}),
    "privbayes, selected": Way(2, {"method": "privbayes", "noise": "selected"}),
    "jtree, selected": Way(2, {"method": "jtree", "noise": "selected"}),
    "jtree, distributed": Way(2, {"method": "jtree", "noise": "distributed"}, {"views": "halves"}),
    "privabn, distributed": Way(2, {"method": "privabn", "noise": "distributed"}),
    "privbayes, local": Way(2, {"method": "privbayes", "noise": "local"}, often=2),
    "independent": Way(2, {"method": "independent"}, often=4),
    "zcdp, local": _dp_subn(2, "local", "accumulate", **_ZCDP),
    "zcdp, in turns": _dp_subn(2, "distributed", "turns", epsilon="10", **_ZCDP),
    "zcdp, in rounds": Way(2, {"method": "guided", "noise": "distributed", "epsilon": "10", **_ZCDP}),
}


@dataclass(frozen=True)
class Lost:
    """A request or its answer is lost: the connection breaks, or silence follows until the asker's patience ends."""

    party: str
    ask: int
    leg: Leg
    in_silence: bool


@dataclass(frozen=True)
class Late:
    """A request or its answer takes its time: later messages overtake it, and the asker may have given it up."""

    party: str
    ask: int
    leg: Leg
    seconds: float


@dataclass(frozen=True)
class Twice:
    """A request arrives a second time, byte for byte."""

    party: str
    ask: int
    seconds: float


@dataclass(frozen=True)
class Spoilt:
    """An answer arrives changed, or another's answer arrives in its place."""

    party: str
    ask: int
    what: Spoiling


@dataclass(frozen=True)
class Death:
    """A process is killed at one of its effects, and starts again from its disk.

    `torn` says which part of what the effect writes is on the disk. A power cut ends the machine as well: what was
    not synced is not on the disk.
    """

    node: str
    effect: Effect
    number: int
    edge: Edge
    torn: float
    seconds: float
    is_power_cut: bool = False


@dataclass(frozen=True)
class Full:
    """A disk takes nothing more: some effects in a row fail."""

    node: str
    effect: Effect
    number: int
    times: int


@dataclass(frozen=True)
class Restored:
    """The curator is killed, and starts again from a copy that was made of its home some messages ago."""

    message: int
    messages_later: int


@dataclass(frozen=True)
class Jump:
    """A clock jumps at one of the node's messages, and is set right again."""

    node: str
    message: int
    jump: int
    seconds: float


@dataclass(frozen=True)
class Busy:
    """A piece of a node's work takes its time, while all others go on."""

    node: str
    work: int
    seconds: float


@dataclass(frozen=True)
class Cancel:
    """The operator cancels the run when the curator has got so many requests."""

    requests: int


@dataclass(frozen=True)
class Rules:
    """A data owner changes party.toml or the table at one of the party's requests, and starts the party again."""

    party: str
    ask: int
    rule: Rule
    word: Word


Fault = Lost | Late | Twice | Spoilt | Death | Full | Restored | Jump | Busy | Cancel | Rules


@dataclass(frozen=True)
class Schedule:
    way: str
    faults: tuple[Fault, ...] = ()
    runs: int = 1
    is_patient: bool = True  # deadlines are far away, or so near that any fault may miss them
    seed: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"party-{k + 1}" for k in range(WAYS[self.way].parties))


Counts = Mapping[tuple[str, str], int]  # how often an undisturbed run comes by a node's effects, messages and work

_MOST = (1, 1, 2, 2, 2, 3, 3, 4, 5, 6)  # faults of a schedule
_KINDS = (
    *(Death,) * 6,
    *(Lost, Lost, Late, Late, Late, Twice, Twice, Spoilt),
    *(Full, Restored, Jump, Jump, Busy, Cancel, Rules),
)
_DOWN = (0.0, 0.0, 0.02, 0.5, 3.0, 20.0)
_DELAYS = (0.005, 0.02, 0.2, 1.0, 5.0, 20.0, 45.0)  # most of them short: waiting costs polls
_LATE = (*_DELAYS, 100.0)  # longer than the asker waits
_AGAIN = (0.0, 0.02, 0.5, 5.0, 45.0, 700.0)
_JUMPS = (-86_400, -1300, -700, -310, -40, -1, 1, 40, 310, 700, 1300, 86_400)
_TORN = (0.0, 0.3, 0.7, 0.99)


def drawn(way: str, seed: int, counts: Counts) -> Schedule:
    """The schedule of this number, at places that an undisturbed run comes by, or a little beyond."""
    return composed(way, Random(f"{way} {seed}"), counts, seed)


def composed(way: str, random: Random, counts: Counts, seed: int = 0) -> Schedule:
    """A schedule from random choices, which Hypothesis may make as well."""
    draw = _Draw(way, counts, random)
    is_patient = random.random() < 0.8
    faults = tuple(draw.fault(random.choice(_KINDS), is_patient) for _ in range(random.choice(_MOST)))
    runs = 2 if random.random() < 0.05 else 1
    return Schedule(way, faults, runs, is_patient, seed)


class _Draw:
    def __init__(self, way: str, counts: Counts, random: Random) -> None:
        self.random, self._counts = random, counts
        self._names = [f"party-{k + 1}" for k in range(WAYS[way].parties)]
        self._effects = sorted(place for place in counts if place[1] in get_args(Effect))

    def fault(self, kind: type[Any], is_patient: bool) -> Fault:
        choice, number = self.random.choice, self._number
        party, node = choice(self._names), choice([CURATOR, *self._names])
        ask, leg = number((party, "ask")), choice(get_args(Leg))
        if kind is Death:
            return self._death()
        if kind is Full:
            return self._full()
        if kind is Restored:
            return Restored(number((CURATOR, "message")), choice((1, 2, 4, 8)))
        if kind is Cancel:
            return Cancel(number((CURATOR, "serve")))
        if kind is Jump:
            return Jump(node, number((node, "message")), choice(_JUMPS), choice(_DELAYS))
        if kind is Busy:
            return Busy(node, number((node, "work")), choice(_DELAYS))
        if kind is Lost:
            return Lost(party, ask, leg, self.random.random() < 0.2)
        if kind is Late:
            return Late(party, ask, leg, choice(_LATE))
        if kind is Twice:
            return Twice(party, ask, choice(_AGAIN))
        if kind is Spoilt:
            return Spoilt(party, ask, choice(get_args(Spoiling)))
        words = get_args(Word) if not is_patient else ("accept", "refuse")
        return Rules(party, ask, choice(get_args(Rule)), choice(words))

    def _death(self) -> Death:
        choice, place = self.random.choice, self.random.choice(self._effects)
        number, is_power_cut = self._number(place), choice((False, False, True))
        return Death(*place, number, choice(get_args(Edge)), choice(_TORN), choice(_DOWN), is_power_cut)

    def _full(self) -> Full:
        place = self.random.choice([place for place in self._effects if place[1] in ON_DISK])
        return Full(*place, self._number(place), self.random.choice((1, 1, 2, 5)))

    def _number(self, place: tuple[str, str]) -> int:
        return self.random.randint(1, self._counts.get(place, 0) + 2)


def kind_of(fault: Fault) -> str:
    """The kind of a fault in words, of which a long search should come by every one."""
    match fault:
        case Death():
            where = f"{'inside' if fault.edge == 'torn' else fault.edge} {fault.effect}"
            return f"{_role(fault.node)} {'loses power' if fault.is_power_cut else 'dies'} {where}"
        case Full():
            return f"{_role(fault.node)}'s disk full at {fault.effect}"
        case Restored():
            return "curator restored from a copy"
        case Lost():
            return f"{fault.leg} lost {'in silence' if fault.in_silence else 'with the connection'}"
        case Late():
            return f"{fault.leg} late by {fault.seconds:g} s"
        case Twice():
            return f"request again after {fault.seconds:g} s"
        case Spoilt():
            return f"answer with a spoilt {fault.what}"
        case Jump():
            return f"{_role(fault.node)}'s clock jumps by {fault.jump} s"
        case Busy():
            return f"{_role(fault.node)} busy for {fault.seconds:g} s"
        case Rules():
            return f"rule or table changed: {fault.rule}, {fault.word}"
        case Cancel():
            return "run cancelled"


def all_kinds(counts: Counts) -> set[str]:
    """Every kind of fault that can be drawn where runs come by these effects."""
    places = {(_role(node), effect) for node, effect in counts if effect in get_args(Effect)}
    edges = ("before", "inside", "after")
    ends = ("dies", "loses power")
    found = {f"{node} {end} {edge} {effect}" for node, effect in places for edge in edges for end in ends}
    found |= {f"{node}'s disk full at {effect}" for node, effect in places if effect in ON_DISK}
    found |= {f"{leg} lost {how}" for leg in get_args(Leg) for how in ("in silence", "with the connection")}
    found |= {f"{leg} late by {seconds:g} s" for leg in get_args(Leg) for seconds in _LATE}
    found |= {f"request again after {seconds:g} s" for seconds in _AGAIN}
    found |= {f"answer with a spoilt {what}" for what in get_args(Spoiling)}
    found |= {f"{node}'s clock jumps by {jump} s" for node in ("curator", "party") for jump in _JUMPS}
    found |= {f"{node} busy for {seconds:g} s" for node in ("curator", "party") for seconds in _DELAYS}
    found |= {f"rule or table changed: {rule}, {word}" for rule in get_args(Rule) for word in get_args(Word)}
    return found | {"run cancelled", "curator restored from a copy"}


def _role(node: str) -> str:
    return CURATOR if node == CURATOR else "party"


def simpler(schedule: Schedule) -> Iterator[Schedule]:
    """Schedules that are simpler by one thing, to find what a failure needs."""
    for number in range(len(schedule.faults)):
        yield replace(schedule, faults=schedule.faults[:number] + schedule.faults[number + 1 :])
    if schedule.runs > 1:
        yield replace(schedule, runs=1)
    if not schedule.is_patient:
        yield replace(schedule, is_patient=True)
    for number, fault in enumerate(schedule.faults):
        if getattr(fault, "seconds", 0) > 1:
            quicker = replace(fault, seconds=0.5)
            yield replace(schedule, faults=(*schedule.faults[:number], quicker, *schedule.faults[number + 1 :]))

"""The options of a plan: one list, from which command line, notebook, form, HTTP interface and README follow.

It does not know what an option does, or what the presets make of it. A new option is one more field of `PlanOptions`.
It stands below everything that implements an option, and loads no numerical library: a command shows its help at once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel, Field, WithJsonSchema

from protocol.exact import Exact

Method = Literal["dp-subn", "guided", "privbayes", "privabn", "jtree", "dp-ccbn", "independent"]
Wanted = Literal["recommended", "dp-subn", "guided", "privbayes", "privabn", "jtree", "dp-ccbn", "independent"]
Preset = Literal["sound", "paper"]
Privacy = Literal["pure", "zcdp"]
Noise = Literal["selected", "distributed", "local"]
Update = Literal["turns", "accumulate", "joint", "replace"]
PICKING_RULES: frozenset[Update] = frozenset({"turns"})  # parties pick pairs in turn, instead of whole families
EncodingName = Literal["native", "binary", "gray", "hierarchical"]
FamilyTables = Literal["maximal", "every"]
ScoreName = Literal["I", "F", "R", "M"]
Choice = Literal["permute-and-flip", "exponential"]
NoiseShape = Literal["cells", "wavelet"]
Kind = Literal["choice", "number", "exact", "exacts", "text"]

MOST_ROWS_OF_A_PERSON = 1000

_Exact = Annotated[Exact, WithJsonSchema({"type": "string", "examples": ["0.8", "4/5"]})]


def is_zero(number: Fraction) -> bool:
    """Whether a plan leaves the field out of its JSON: plans without it, which older releases make, mean 0."""
    return not number


def is_two(number: int) -> bool:
    """Whether a plan leaves the field out of its JSON: plans without it, which older releases make, mean 2."""
    return number == 2


def is_empty(text: str) -> bool:
    """Whether a plan leaves the field out of its JSON: plans without it, which older releases make, mean nothing."""
    return not text


def is_one(number: int) -> bool:
    """Whether a plan leaves the field out of its JSON: plans without it, which older releases make, mean 1."""
    return number == 1


def is_maximal(tables: str) -> bool:
    """Whether a plan leaves the field out of its JSON: plans without it, which older releases make, mean maximal."""
    return tables == "maximal"


def is_cells(shape: str) -> bool:
    """Whether a plan leaves the field out of its JSON: plans without it, which older releases make, mean cells."""
    return shape == "cells"


@dataclass(frozen=True)
class Option:
    """What people read about an option, and how it is asked for, wherever it is offered."""

    label: str
    help: str  # what it means, in one sentence
    default: str  # in words: what holds for whoever does not ask for it
    concerns: str = ""  # the plans that it makes a difference to; empty: all
    metavar: str = ""  # what stands for its value in the help of a command
    is_basic: bool = False  # shown at once, not under "More options"
    is_required: bool = False
    value: str | None = None  # the default itself, where the preset does not decide
    bounds: Any = None  # a `Field`: narrower in a request than in a plan


class PlanOptions(BaseModel):
    """The fields of a plan that an operator may ask for. Those that have no value here get one from the preset."""

    epsilon: Annotated[
        _Exact,
        Option(
            "Epsilon",
            "what each party spends at most, as 0.8 or 4/5",
            "none: you must say",
            metavar="E",
            is_basic=True,
            is_required=True,
        ),
    ]
    method: Annotated[
        Wanted,
        Option(
            "Method",
            "dp-subn: the paper's five phases; guided: the pairs that one model answers worst; recommended: the one of "
            "these two that the plan predicts to be better; privbayes: a network placed in turn, and its tables; "
            "privabn: the same with families that grow parent by parent; jtree: views of pairs, then the groups of a "
            "junction tree; dp-ccbn: the papers' first cut, slower; independent: every party models its own rows alone",
            "recommended",
            is_basic=True,
            value="recommended",
        ),
    ]
    preset: Annotated[
        Preset,
        Option(
            "Preset",
            "sound: settings that hold against insiders and measured better; paper: the papers' settings, honestly "
            "priced",
            "sound",
            is_basic=True,
            value="sound",
        ),
    ]
    privacy: Annotated[
        Privacy,
        Option(
            "Privacy",
            "pure: the promise holds without a delta; zcdp: (epsilon, delta), with less noise for the same epsilon, "
            "where every party's rules allow the delta",
            "pure",
        ),
    ] = "pure"
    delta: Annotated[
        _Exact,
        Option(
            "Delta",
            "the probability with which the bound may fail: far below one over the number of rows",
            "1e-9",
            concerns="privacy zcdp",
            metavar="D",
        ),
    ] = Fraction(0)
    insiders: Annotated[
        int,
        Field(ge=0),
        Option(
            "Insiders",
            "how many curious parties may pool what they know",
            "1; with preset paper 0",
            metavar="T",
            is_basic=True,
            bounds=Field(le=1000),
        ),
    ]
    rows_per_person: Annotated[
        int,
        Field(ge=1, le=MOST_ROWS_OF_A_PERSON, exclude_if=is_one),
        Option(
            "Rows per person",
            "how many rows a person may have at a party; every party bounds its rows to so many by its column of "
            "person keys",
            "the most that a party offers",
            metavar="R",
        ),
    ] = 1
    parties_per_person: Annotated[
        int,
        Field(ge=1, exclude_if=is_one),
        Option(
            "Parties per person",
            "at how many parties a person may have rows; nobody can check it",
            "1",
            metavar="M",
            bounds=Field(le=1000),
        ),
    ] = 1
    noise: Annotated[
        Noise,
        Option(
            "Noise",
            "whose noise stays in a sum. selected: that of insiders + 1 parties (Paillier); distributed: a part of "
            "every party's, K / (K - insiders) shares among K parties; local: all noise of every party",
            "selected; with methods guided, privbayes, privabn and jtree distributed",
            is_basic=True,
        ),
    ]
    update: Annotated[
        Annotated[Update, Field()] | None,
        Option(
            "Updates",
            "how the first network is improved. turns: each party in turn picks from the frontier what all then count; "
            "accumulate: each party in turn counts its own rows; joint: all parties at once; replace: as in the paper, "
            "charged K - k + 1 times",
            "turns; with preset paper replace",
            concerns="method dp-subn",
        ),
    ] = None
    rounds: Annotated[
        int,
        Field(ge=1, le=100),
        Option(
            "Rounds",
            "how often the network is improved",
            "as the budget allows; joint: 2",
            concerns="method guided or update joint",
            metavar="R",
        ),
    ]
    encoding: Annotated[
        EncodingName,
        Option(
            "Encoding",
            "how attributes become variables. native: as they are; binary, gray: as bits; hierarchical: as they are, "
            "with generalised parents",
            "native; with preset paper binary",
        ),
    ]
    score: Annotated[
        ScoreName,
        Option(
            "Score",
            "how a set of parents is rated. M: by what the model so far answers wrongly; I: by mutual information; "
            "F, R: by PrivBayes' scores, F for bits alone",
            "M where pairs are picked one by one; else F for bits and R otherwise, with preset paper I",
        ),
    ]
    choice: Annotated[
        Choice,
        Option(
            "Choice",
            "the mechanism by which a set of parents is picked privately",
            "permute-and-flip; with privacy zcdp or preset paper exponential",
        ),
    ]
    # dp-subn: of phases 1 to 4; most others: of structure and parameters. A plan holds rho's with zcdp.
    split: Annotated[
        tuple[_Exact, ...],
        Option(
            "Split of epsilon",
            "each phase's part of epsilon, exact, with commas between; with privacy zcdp proportions of rho",
            "as the preset divides it",
            metavar="E1,E2,E3,E4",
            bounds=Field(min_length=2, max_length=4),
        ),
    ]
    edges: Annotated[
        _Exact,
        Field(exclude_if=is_zero),
        Option(
            "Part for edges",
            "the part of the budget, as 0.1, that finds the edges of the bins of all attributes with `find`",
            "0: every bin of the schema is counted",
            concerns="method dp-subn or guided, and encoding native",
            metavar="X",
        ),
    ] = Fraction(0)
    ways: Annotated[
        int,
        Field(ge=2, le=3, exclude_if=is_two),
        Option(
            "Attributes at once",
            "the most attributes of a set that is picked and counted: with 3, what shows only in three attributes "
            "together can be found, while less is left for each pair",
            "2",
            concerns="method guided",
            metavar="W",
        ),
    ] = 2
    target: Annotated[
        str,
        Field(max_length=500, exclude_if=is_empty),
        Option(
            "Target",
            "what the table is for: attributes with commas between, as income, or sets as age+sex+income; sets of "
            "other attributes count half in private choices",
            "all attributes alike",
            concerns="method dp-subn or guided, and score M",
            metavar="NAMES",
        ),
    ] = ""
    theta: Annotated[
        _Exact,
        Option(
            "Theta",
            "how many times more information than noise a table must carry",
            "6; with methods privbayes and independent 4, with privabn and jtree 2",
            concerns="a score other than M",
            metavar="X",
        ),
    ]
    degree: Annotated[
        Annotated[int, Field(ge=0)] | None,
        Option(
            "Degree",
            "the largest number of parents",
            "as theta allows",
            concerns="a score other than M",
            metavar="D",
            is_basic=True,
            bounds=Field(le=1000),
        ),
    ] = None
    family_tables: Annotated[
        FamilyTables,
        Field(exclude_if=is_maximal),
        Option(
            "Tables of families",
            "which families of a network are counted. maximal: those that are in no other family, which share the "
            "budget, so that PrivBayes' first k follow from the next one; every: one for every column",
            "maximal",
            concerns="a score other than M",
        ),
    ] = "maximal"
    noise_shape: Annotated[
        NoiseShape,
        Field(exclude_if=is_cells),
        Option(
            "Shape of the noise",
            "where the noise of single columns lies. cells: in every count; wavelet: in Haar coefficients of columns "
            "with 32 or more values that have an order or a taxonomy, so that counts of ranges and groups are more "
            "precise and single counts less",
            "wavelet where columns are counted alone and it halves the variance of their ranges, as with privacy zcdp "
            "and 70 values or more; else cells",
            concerns="encoding native and a pass over single columns",
        ),
    ] = "cells"
    rows: Annotated[
        int,
        Field(ge=1),
        Option(
            "Rows of the table",
            "how many rows the synthetic table has",
            "as many as the parties have",
            metavar="N",
            is_basic=True,
            bounds=Field(le=10**9),
        ),
    ]
    key_bits: Annotated[
        int,
        Field(ge=256, le=16384, multiple_of=8),
        Option("Paillier key, bits", "the size of the Paillier key", "3072", concerns="noise selected", metavar="B"),
    ]


@dataclass(frozen=True)
class PlanOption:
    """An option with its name and type."""

    name: str
    type: Any
    constraints: tuple[Any, ...]  # of a plan and of a request
    words: Option

    @property
    def choices(self) -> tuple[str, ...]:
        return get_args(self.type) if get_origin(self.type) is Literal else ()

    @property
    def kind(self) -> Kind:
        if self.choices:
            return "choice"
        if get_origin(self.type) is tuple:
            return "exacts"
        kinds: Mapping[Any, Kind] = {Fraction: "exact", str: "text"}
        return kinds.get(self.type, "number")

    @property
    def sentence(self) -> str:
        """Its meaning and, if it has one, its default, on one line."""
        return self.meaning if self.words.is_required else f"{self.meaning} ({self.words.default})"

    @property
    def meaning(self) -> str:
        """Its meaning and the plans that it concerns."""
        return f"{self.words.help}; only with {self.words.concerns}" if self.words.concerns else self.words.help


def options_of(model: type[BaseModel]) -> Mapping[str, PlanOption]:
    """The options among a model's fields, by name, in their order."""
    found = {}
    for name, field in model.model_fields.items():
        words = next((one for one in field.metadata if isinstance(one, Option)), None)
        if words is not None:
            rest = tuple(one for one in field.metadata if one is not words)
            found[name] = _option(name, field.annotation, rest, words)
    return found


def _option(name: str, annotation: Any, constraints: tuple[Any, ...], words: Option) -> PlanOption:
    kinds = [kind for kind in get_args(annotation) if kind is not NoneType]
    if len(kinds) < len(get_args(annotation)):  # may be None in a plan
        own, *more = get_args(kinds[0])
        annotation, constraints = own, (*more, *constraints)
    return PlanOption(name, annotation, constraints, words)


PLAN_OPTIONS = options_of(PlanOptions)

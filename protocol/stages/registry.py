"""Registry of every stage and every update rule by name; the program runs on these tables.

It does not know how a stage works, or in which order stages come (`protocol.stages.methods`).
"""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import get_args

from protocol.options import Update
from protocol.plan.step import StageName, Step
from protocol.plan.terms import Terms
from protocol.stages.candidates import Candidates
from protocol.stages.correlations import Correlations
from protocol.stages.definitions.jtree import Clusters
from protocol.stages.definitions.models import Models
from protocol.stages.definitions.privabn import Growth
from protocol.stages.dependence import ColumnDependence
from protocol.stages.edges import BinEdges
from protocol.stages.guided import Further, Tables
from protocol.stages.initial import Initial
from protocol.stages.levels import Levels
from protocol.stages.parameters import Parameters
from protocol.stages.stage import Stage
from protocol.stages.updates.rule import UpdateRule
from protocol.tables.marginal import Table

# A rule is known by its name in the plan: the module `protocol.stages.updates.<name>` holds it.
UPDATES: Mapping[Update, UpdateRule] = {
    name: import_module(f"protocol.stages.updates.{name}").RULE for name in get_args(Update)
}
_COMMON: Sequence[Stage] = (
    BinEdges(),
    ColumnDependence(),
    Levels(),
    Correlations(),
    Initial(),
    Growth(),
    Tables(),
    Further(),
    Candidates(),
    Models(),
    Clusters(),
    Parameters(),
)


def stage_of(terms: Terms, step: Step) -> Stage:
    """The stage that a step after joining belongs to."""
    return stages(terms.plan.rule)[step.stage]


def blank_columns(terms: Terms) -> list[Table]:
    """Tables of every variable alone, with their noise and nothing counted; none where no pass counts them so."""
    step = next((step for step in terms.steps if step.stage == "levels"), None)
    return Levels().blank(terms, step) if step is not None else []


@cache
def stages(rule: Update | None) -> Mapping[StageName, Stage]:
    """Every stage of plans with this update rule, by name."""
    return {stage.name: stage for stage in (*_COMMON, *(UPDATES[rule].stages if rule else ()))}


def labels() -> Mapping[str, str]:
    """Labels of the stages for people, by name."""
    found: dict[str, str] = {name: stage.label for update in UPDATES for name, stage in stages(update).items()}
    return {"joining": "Joining", **found}

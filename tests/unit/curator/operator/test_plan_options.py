"""Whatever is in the list of plan options is on the command line, in a request, on the form and in the notebook."""

import argparse
from fractions import Fraction
from inspect import signature
from typing import Annotated, Any

import pytest
from pydantic import Field

from curator import interface
from curator.experiments.demo_command import add_demo_options
from curator.experiments.sweep.grid import Cell
from curator.operator import notebook
from curator.operator.plan_options import add_plan_options, as_json, wishes
from curator.pages import plan_form
from protocol.options import PLAN_OPTIONS, Option, PlanOptions, options_of

BESIDE = {"schema", "parties", "join_seconds", "step_seconds", "anyway"}  # of a request, but not of a plan


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser()
    add_plan_options(found)
    return found


def test_every_option_is_on_the_command_line() -> None:
    actions = {action.dest: action for action in parser()._actions if action.dest != "help"}
    assert actions.keys() == PLAN_OPTIONS.keys()
    for name, option in PLAN_OPTIONS.items():
        assert actions[name].option_strings == [f"--{name.replace('_', '-')}"]
        assert tuple(actions[name].choices or ()) == option.choices
        assert actions[name].required == (name == "epsilon")


def test_what_is_typed_is_read_by_its_kind() -> None:
    typed = ["--epsilon=4/5", "--theta=5.5", "--split=1/2,0.25", "--rows=7", "--noise=local"]
    chosen = parser().parse_args(typed)
    assert (chosen.epsilon, chosen.method, chosen.preset) == ("4/5", "recommended", "sound")
    found = {name: wish for name, wish in wishes(chosen).items() if wish is not None}
    halves = (Fraction(1, 2), Fraction(1, 4))
    assert found == {"theta": Fraction(11, 2), "split": halves, "rows": 7, "noise": "local"}
    assert as_json(found) == {"theta": "11/2", "split": ["1/2", "1/4"], "rows": 7, "noise": "local"}


def test_a_binary_float_is_no_exact_number() -> None:
    with pytest.raises(ValueError, match="exact number"):
        as_json({"theta": 5.5})
    assert as_json({"theta": None, "join_seconds": 3}) == {"join_seconds": 3}


def test_every_option_is_in_a_request_with_its_words() -> None:
    described = interface.PlanRequest.model_json_schema()
    assert described["properties"].keys() == PLAN_OPTIONS.keys() | BESIDE
    assert set(described["required"]) == {"schema", "epsilon"}
    for name, option in PLAN_OPTIONS.items():
        assert described["properties"][name]["description"] == option.sentence
        assert described["properties"][name]["title"] == option.words.label


def test_every_option_is_in_the_notebooks_signatures_and_help() -> None:
    for method, beside in ((notebook.Curator.plan, ()), (notebook.Curator.run, ("anyway",))):
        named, options = list(signature(method).parameters), [name for name in PLAN_OPTIONS if name != "epsilon"]
        assert named == ["self", "schema", "epsilon", *beside, "parties", *options]
        assert f"noise: {PLAN_OPTIONS['noise'].sentence}" in str(method.__doc__)


def test_the_demonstration_takes_the_lists_methods() -> None:
    demo = argparse.ArgumentParser()
    add_demo_options(demo)
    (method,) = [action for action in demo._actions if action.dest == "method"]
    assert (method.choices, method.default) == (PLAN_OPTIONS["method"].choices, None)  # the default is two runs


class Wider(PlanOptions):
    zeal: Annotated[int, Field(ge=1), Option("Zeal", "how much of it", "3", metavar="Z", bounds=Field(le=9))] = 3


def test_an_option_that_is_new_appears_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PLAN_OPTIONS, "zeal", options_of(Wider)["zeal"])
    chosen = parser().parse_args(["--epsilon=1", "--zeal=4"])
    assert wishes(chosen)["zeal"] == 4
    assert "--zeal Z" in parser().format_help()
    assert Cell("table", (("epsilon", "1"), ("zeal", "5")), "", 1).settings.wishes["zeal"] == 5

    class Request(interface.PlanRequest):
        pass

    request: Any = interface.with_plan_options(Request)
    assert request.model_validate({"schema": "5d" * 32, "epsilon": "1", "zeal": 2}).wishes()["zeal"] == 2
    assert request.model_json_schema()["properties"]["zeal"]["anyOf"][0] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 9,
    }
    monkeypatch.setattr(plan_form, "PlanRequest", request)
    (field,) = [one for one in plan_form.fields()[1] if one.name == "zeal"]
    assert (field.label, field.hint, field.kind, field.largest) == ("Zeal", "how much of it (3)", "number", 9)

    def asking(schema: str, epsilon: str, **wishes: Any) -> None:
        """Ask."""

    assert "zeal" in signature(notebook.with_plan_options(asking)).parameters

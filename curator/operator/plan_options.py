"""Options of a plan on a command line and in a request, the same for experiments and for real runs.

It does not know which options exist (`protocol.options`), or how they are used.
"""

import argparse
from collections.abc import Callable, Mapping
from typing import Any

from protocol.exact import exact
from protocol.options import PLAN_OPTIONS, Kind, PlanOption

_APART = ("epsilon", "method", "preset")  # arguments of every plan; all other options are optional


def _fraction(text: str) -> Any:
    try:
        return exact(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _fractions(text: str) -> Any:
    return tuple(_fraction(part) for part in text.split(","))


_READ: Mapping[Kind, Callable[[str], Any]] = {"number": int, "exact": _fraction, "exacts": _fractions, "text": str}


def add_plan_options(group: Any) -> None:
    for option in PLAN_OPTIONS.values():
        add_plan_option(group, option)


def add_plan_option(group: Any, option: PlanOption) -> None:
    words = option.words
    settings: dict[str, Any] = {"help": option.sentence.replace("%", "%%"), "default": words.value}
    if option.choices:
        settings["choices"] = option.choices
    else:
        settings["metavar"] = words.metavar
        # Epsilon stays as typed: an error in it is reported together with the plan's errors.
        settings["type"] = str if words.is_required else _READ[option.kind]
    group.add_argument(f"--{option.name.replace('_', '-')}", required=words.is_required, **settings)


def wishes(chosen: argparse.Namespace) -> dict[str, Any]:
    """Return the chosen options besides epsilon, method and preset, None where the preset decides."""
    return {name: getattr(chosen, name) for name in PLAN_OPTIONS if name not in _APART}


def as_json(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the chosen options as a request holds them: exact numbers as text, and no entry for None.

    Raise ValueError for a binary float in place of an exact number.
    """
    return {name: _as_json(PLAN_OPTIONS.get(name), value) for name, value in asked.items() if value is not None}


def _as_json(option: PlanOption | None, value: Any) -> Any:
    if option is None:
        return value
    if option.kind == "exacts":
        return [str(exact(part)) for part in value]
    return str(exact(value)) if option.kind == "exact" else value

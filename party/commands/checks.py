"""`subn-party check`: every data set against its schema, how its file is read, and whether the curator answers.

It does not know the command line's words or how results are printed.
"""

from math import comb
from typing import Any

from party import source, views
from party.commands.line import Seams, call, curator_of
from party.commands.result import Result, reading_line
from party.errors import SettingsError, TalkError
from party.home import settings
from party.home.home import OpenHome, open_home
from party.home.layout import Home
from party.home.settings import Dataset, schema_of
from protocol.errors import DataError
from protocol.run.scans import TO_JOIN
from protocol.tables.any_rows import AT_ONCE
from protocol.tables.attributes import quoted
from protocol.tables.schema import Schema

_MOST_SHOWN = 10  # bad values of each column and class
_LONGEST_SHOWN = 80  # characters of a bad value
_HOW_TO_SAY = "if not, set delimiter, decimal, encoding, quote or sheet in party.toml"


def check(home: Home, chosen: Any) -> Result:
    if chosen.show_values and chosen.json:
        raise SettingsError("--show-values is for your eyes on the spot: leave --json out")
    with open_home(home) as opened:
        datasets = {name: checked(opened, name) for name in opened.settings.datasets}
        values = {name: _offending(opened, name) for name in datasets} if chosen.show_values else {}
        for one in datasets.values():
            if "schema" in one:
                settings.dataset_for(home, opened.settings, one["schema"])  # refuses two data sets of one schema
        unclear, shared = opened.unclear_accounts(), map(views.sharing, views.accounts(opened).values())
        curator = _curator_answers(opened, chosen.seams)
    fits = all(one["fits"] for one in datasets.values())
    lines = [line for name, one in datasets.items() for line in (*_check_lines(name, one), *values.get(name, ()))]
    lines += [f"accounts: {one}" for one in (*filter(None, shared), *unclear)]
    lines.append(f"curator: {curator['what']}")
    code = 2 if not fits or unclear else 1 if curator["reachable"] is False else 0
    data = {"datasets": datasets, "curator": curator, "fits": fits, "unclear_accounts": unclear}
    return Result(data, lines, code)


def checked(opened: OpenHome, name: str) -> dict[str, Any]:
    """Find all problems of one data set before its rules apply, and whether it fits with its rules."""
    dataset = opened.settings.datasets[name]
    try:
        schema = schema_of(opened.home, name, dataset)
        found = source.check(opened.home.path, dataset, schema, reading_line())
    except (SettingsError, DataError) as error:
        return {"fits": False, "why": str(error), "problems": []}
    problems = [{"column": one.column, "what": one.what, "count": one.count} for one in found.problems]
    checked = {"fits": True, "why": "", "rows": found.rows, "schema": schema.hash, "problems": problems}
    checked |= {"read": found.how, "persons": persons_in_words(dataset, found)}
    if dataset.engine:
        checked["engine"] = engine_in_words(dataset, schema)
    if found.rows and not problems:  # no rule is needed, so the table need not be read a second time
        return checked
    try:
        source.table(opened.home.path, dataset, schema, opened.keys.choosing, reading_line())
    except DataError as error:
        checked |= {"fits": False, "why": str(error)}
    return checked


def persons_in_words(dataset: Dataset, found: source.Findings) -> str:
    """Say for how many persons the rows stand, and how many rows take part."""
    if dataset.person_key is None:
        word = f"; your word: at most {dataset.rows_per_person} of a person" if dataset.rows_per_person else ""
        return f"rows per person: not checked: no person key{word}"
    if found.persons is None:
        return ""  # the problems say why
    people, bound = found.persons.persons, found.persons.bound
    told = f"rows per person: checked: {found.rows:,} rows of {people:,} persons"
    return (
        told
        if found.persons.rows == found.rows
        else f"{told}; {found.persons.rows:,} take part, at most {bound} of each"
    )


def engine_in_words(dataset: Dataset, schema: Schema) -> str:
    """Say where rows are counted, and what a run costs there."""
    pairs = comb(len(schema.names), 2)
    return (
        f"counted in {dataset.engine_shown}, no row comes here. A run reads the table twice, to examine and to code "
        f"it, and {TO_JOIN - 3} more times if values have to be fetched. Then it reads only its codes: one scan counts "
        f"{AT_ONCE} tables of a step or more, so that all {pairs:,} pairs take at most {-(-pairs // AT_ONCE) or 1}. "
        "The request of a run says how many scans it takes."
    )


def _check_lines(name: str, found: dict[str, Any]) -> list[str]:
    head = f"{name}: {found['rows']:,} rows" if "rows" in found else f"{name}:"
    read = [f"  read with {found['read']}: read so? {_HOW_TO_SAY}"] if found.get("read") else []
    problems = [
        f"  {one['count']:,} times in {one['column'] or 'whole rows'}: {one['what']}" for one in found["problems"]
    ]
    lines = problems + read + [f"  {found[name]}" for name in ("persons", "engine") if found.get(name)]
    if not found["fits"]:
        return [
            f"{head} DO NOT FIT" if "rows" in found else f"{head} cannot be read",
            *lines,
            *(f"  {'first: ' if not number else ''}{why}" for number, why in enumerate(found["why"].splitlines())),
        ]
    return [f"{head} fit{' by your out_of_range rules' if problems else ''}", *lines]


def _offending(opened: OpenHome, name: str) -> list[str]:
    """List values that do not fit, with their places.

    Privacy: they are printed for the data owner who asked, on the spot; nothing keeps them.
    """
    dataset = opened.settings.datasets[name]
    try:
        schema = schema_of(opened.home, name, dataset)
        cells = source.offending(opened.home.path, dataset, schema, _MOST_SHOWN)
    except (SettingsError, DataError):
        return []  # `checked` says why, or that the rows are in an engine
    shown = [
        f"  {place}{', column ' + quoted(cell.column) if cell.column else ''}: {cell.what}: {_short(cell.text)}"
        for place, cell in cells
    ]
    return [f"  the first {_MOST_SHOWN} of each kind, for your eyes only:", *shown] if shown else []


def _short(text: str) -> str:
    return quoted(text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}...")


def _curator_answers(opened: OpenHome, seams: Seams) -> dict[str, Any]:
    if opened.settings.curator is None:
        return {"reachable": None, "what": "not enrolled yet"}
    try:
        call(curator_of(opened, seams, tries=1), lambda line: line.my_runs())
    except TalkError as error:
        return {"reachable": False, "what": str(error)}
    return {"reachable": True, "what": f"{opened.curator.url} answers, and knows {opened.curator.name}"}

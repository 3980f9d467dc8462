"""A bound on the rows of a person: which rows take part, and what decides it."""

import csv
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from party.commands.checks import persons_in_words
from party.home.settings import Dataset
from party.persons import PersonsFound
from party.source import check, load
from protocol.errors import DataError
from protocol.tables.schema import Schema
from tests.statistical.goodness import FALSE_ALARM

SCHEMA = Schema.parse({"attributes": [{"name": "visit", "kind": "integer", "min": 0, "max": 999}]})
VISITS = {"ann": 4, "bob": 1, "cem": 2, "dan": 7}
SECRET = bytes(range(32))


def dataset(**settings):
    given = {"source": "t.csv", "schema": "s.json", "epsilon_total": "1", "person_key": "id"}
    return Dataset.model_validate(given | settings)


def written(folder, visits=VISITS, first=0, order=None):
    """A table in which every row has a number of its own."""
    rows = [name for name, count in visits.items() for _ in range(count)]
    rows = [[name, first + number] for number, name in enumerate(rows)]
    rows = rows if order is None else [rows[place] for place in order]
    with (folder / "t.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["id", "visit"], *rows])
    return {str(number): name for name, number in rows}


def kept(folder, bound, secret=SECRET):
    (column,) = load(folder, dataset(rows_per_person=bound), SCHEMA, secret)
    return column.tolist()


@pytest.mark.parametrize("bound", [1, 2, 3, 7, 100])
def test_so_many_rows_of_each_person_take_part(tmp_path, bound):
    names = written(tmp_path)
    found = Counter(names[str(visit)] for visit in kept(tmp_path, bound))
    assert found == {name: min(count, bound) for name, count in VISITS.items()}
    told = check(tmp_path, dataset(rows_per_person=bound), SCHEMA)
    assert told.persons == PersonsFound(4, bound, sum(found.values()))
    assert (told.rows, told.problems) == (14, ())


def test_without_the_setting_a_repeated_person_is_an_error_that_names_both_ways_out(tmp_path):
    written(tmp_path)
    with pytest.raises(DataError, match=r"line 3, .* correct it, or set rows_per_person in party.toml$"):
        load(tmp_path, dataset(), SCHEMA, SECRET)


def test_without_a_person_key_the_setting_is_a_word_and_leaves_all_rows(tmp_path):
    written(tmp_path)
    without = dataset(person_key=None, rows_per_person=2)
    assert len(load(tmp_path, without, SCHEMA, SECRET)[0]) == 14
    assert without.checked_bound is None
    assert check(tmp_path, without, SCHEMA).persons is None


def test_the_bound_that_is_offered_needs_a_person_key():
    assert (dataset().checked_bound, dataset(rows_per_person=3).checked_bound) == (1, 3)


def test_the_rows_follow_from_the_secret_and_never_from_what_they_hold(tmp_path):
    written(tmp_path)
    before = kept(tmp_path, 2)
    written(tmp_path, first=100)
    assert [visit - 100 for visit in kept(tmp_path, 2)] == before
    others = {tuple(kept(tmp_path, 2, bytes([other] * 32))) for other in range(20)}
    assert len(others) > 5


def test_nobody_else_s_rows_change_with_a_person_s_values_or_rows(tmp_path):
    names = written(tmp_path)
    before = [names[str(visit)] for visit in kept(tmp_path, 2)]
    rows = kept(tmp_path, 2)
    written(tmp_path, VISITS | {"dan": 3})  # the last: all others keep their numbers
    after = kept(tmp_path, 2)
    assert after[:-2] == rows[:-2]
    assert before[-2:] == ["dan"] * 2


def test_fewer_rows_are_among_more(tmp_path):
    written(tmp_path)
    assert set(kept(tmp_path, 1)) < set(kept(tmp_path, 2)) < set(kept(tmp_path, 3))


def test_every_place_of_a_person_s_rows_is_as_likely(tmp_path):
    """Chi-square over 3,000 persons of 5 rows each, in the order of the file; false-alarm rate 1e-6."""
    people = 3000
    with (tmp_path / "t.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["id", "visit"], *[[f"p{p}", place] for p in range(people) for place in range(5)]])
    for bound in (1, 3):
        seen = np.bincount(kept(tmp_path, bound), minlength=5)
        assert seen.sum() == people * bound
        assert stats.chisquare(seen).pvalue > FALSE_ALARM


def test_the_check_says_for_whom_the_rows_stand(tmp_path):
    written(tmp_path)
    bounded = dataset(rows_per_person=1)
    told = persons_in_words(bounded, check(tmp_path, bounded, SCHEMA))
    assert told == "rows per person: checked: 14 rows of 4 persons; 4 take part, at most 1 of each"
    word = dataset(person_key=None, rows_per_person=2)
    told = persons_in_words(word, check(tmp_path, word, SCHEMA))
    assert told == "rows per person: not checked: no person key; your word: at most 2 of a person"
    keyless = dataset(person_key=None)
    assert persons_in_words(keyless, check(tmp_path, keyless, SCHEMA)) == "rows per person: not checked: no person key"

"""A budget belongs to rows: which sections share one, what they claim of the past, and what has to be asked."""

import os
from fractions import Fraction
from pathlib import Path

import pytest

from party.books.budget import Account
from party.home.accounts import accounts_of, contradictions, sources_in
from party.home.layout import Home
from party.home.settings import load

POSTGRES = "postgresql+psycopg://reader:secret@db.example:5432/clinic"
ALL, SOME = "SELECT * FROM patients", "SELECT * FROM patients WHERE consent"


def section(name: str, source: str = "patients.csv", total: str = "1", **more: object) -> str:
    lines = [f"[datasets.{name}]", f'source = "{source}"', 'schema = "schema.json"', f'epsilon_total = "{total}"']
    return "\n".join([*lines, *(f"{key} = {_toml(value)}" for key, value in more.items())])


def _toml(value: object) -> str:
    return str(value) if isinstance(value, list) else f'"{value}"'


class Site:
    def __init__(self, folder: Path) -> None:
        self.home = Home(folder)
        (folder / "patients.csv").write_text("a,b\n")

    def read(self, *sections: str, policy: str = "") -> tuple[tuple[Account, ...], list[str]]:
        """The accounts of these sections, and what is unclear about them."""
        rules = f'[policy]\nepsilon_per_run = "1"\n{policy}'
        self.home.settings.write_text("\n\n".join([*sections, rules]))
        settings = load(self.home)
        sources = sources_in(self.home, settings)
        found = accounts_of(settings.datasets, sources)
        return found, list(contradictions(settings.datasets, sources, found))

    def shared(self, *sections: str) -> list[tuple[str, ...]]:
        found, unclear = self.read(*sections)
        assert not unclear
        return [account.datasets for account in found]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


# Which sections share an account


def test_one_file_has_one_account_whatever_leads_to_it(site: Site) -> None:
    folder = site.home.path
    (folder / "link.csv").symlink_to("patients.csv")
    os.link(folder / "patients.csv", folder / "hard.csv")
    ways = ["patients.csv", "./patients.csv", f"../{folder.name}/patients.csv", f"{folder}/patients.csv"]
    ways += ["link.csv", "hard.csv"]
    names = tuple(f"s{number}" for number in range(len(ways)))
    assert site.shared(*(section(name, way) for name, way in zip(names, ways, strict=True))) == [names]


@pytest.mark.parametrize("content", ["a,c\n", "a,b\n1,2\n", ""])
def test_other_files_have_other_accounts(site: Site, content: str) -> None:
    (site.home.path / "other.csv").write_text(content)
    assert site.shared(section("one"), section("two", "other.csv"), section("gone", "absent.csv")) == [
        ("one",),
        ("two",),
        ("gone",),
    ]


@pytest.mark.parametrize(
    "other",
    [
        POSTGRES.replace("reader:secret", "owner:other"),
        POSTGRES.replace(":5432", ""),
        POSTGRES.replace("+psycopg", ""),
        POSTGRES.replace("db.example", "DB.EXAMPLE"),
    ],
)
def test_a_database_is_known_without_user_driver_and_usual_port(site: Site, other: str) -> None:
    sections = section("one", POSTGRES, query=ALL), section("two", other, query=f"  {ALL.replace(' ', '  ')} ;")
    assert site.shared(*sections) == [("one", "two")]


@pytest.mark.parametrize("url", ["postgresql://h/clinic?host=/run", "postgresql://h:5433/clinic", "mysql://h/clinic"])
def test_other_databases_have_other_accounts(site: Site, url: str) -> None:
    sections = [("one", "postgresql://h/clinic"), ("two", url)]
    apart = (section(name, url, query=ALL, budget=name) for name, url in sections)
    assert site.shared(*apart) == [("one",), ("two",)]


def test_a_sqlite_file_is_a_file(site: Site) -> None:
    (site.home.path / "db.sqlite").touch()
    (site.home.path / "link.sqlite").symlink_to("db.sqlite")
    urls = [f"sqlite:///{site.home.path}/{name}" for name in ("db.sqlite", "link.sqlite")]
    assert site.shared(*(section(f"s{n}", url, query=ALL) for n, url in enumerate(urls))) == [("s0", "s1")]


def test_a_named_budget_is_shared_by_whoever_names_it(site: Site) -> None:
    sections = section("a", "a.csv", budget="cohort"), section("b", "b.csv"), section("c", "c.csv", budget="cohort")
    found, unclear = site.read(*sections)
    assert ([(one.name, one.datasets) for one in found], unclear) == ([("cohort", ("a", "c")), ("b", ("b",))], [])


def test_accounts_are_joined_by_a_chain(site: Site) -> None:
    sections = section("a", "a.csv", budget="x"), section("b", "b.csv"), section("c", "a.csv"), section("d", budget="x")
    assert site.shared(*sections) == [("a", "c", "d"), ("b",)]


# What an account claims and may spend


def test_what_a_lost_home_spent_counts_from_the_beginning(site: Site) -> None:
    more = {"spent_before": "3/2", "delta_spent_before": "1e-9", "formerly": ["cases"]}
    (found,), _ = site.read(section("patients", **more), section("too", spent_before="1/2"))
    assert found.before == (2, Fraction(1, 10**9))
    assert {"patients", "too", "cases"} == set(found.claims.names)


def test_the_tightest_limit_holds_and_the_difference_is_told(site: Site) -> None:
    (found,), unclear = site.read(section("one", total="1"), section("two", total="3"))
    assert found.limit == (1, 0)
    assert unclear == [
        "one and two share one account, but their epsilon_total or delta_total differ: give all of them the same"
    ]


def test_a_source_in_the_ledger_tells_no_password_and_no_path(site: Site) -> None:
    site.read(section("one", POSTGRES, query=ALL), section("two"))
    for source in sources_in(site.home, load(site.home)).values():
        assert "secret" not in repr(source)
        assert set(source.digest) <= set("0123456789abcdef")


# What has to be asked


def test_two_budgets_over_the_same_rows_are_refused(site: Site) -> None:
    _, unclear = site.read(section("one", budget="x"), section("two", budget="y"))
    assert unclear == [
        "one and two read the same rows, but name two budgets, 'x' and 'y': the same rows have one budget; name the "
        "same in both"
    ]


def test_two_queries_of_one_database_are_asked_about(site: Site) -> None:
    sections = [("one", ALL), ("two", SOME)]
    _, unclear = site.read(*(section(name, POSTGRES, query=query) for name, query in sections))
    assert len(unclear) == 1
    assert 'write the same budget = "..." into both; if nobody can, write a budget = "..." of its own' in unclear[0]
    apart = (section(name, POSTGRES, query=query, budget=name) for name, query in sections)
    assert site.shared(*apart) == [("one",), ("two",)]
    together = (section(name, POSTGRES, query=query, budget="all") for name, query in sections)
    assert site.shared(*together) == [("one", "two")]


@pytest.mark.parametrize(
    "url",
    [
        POSTGRES.replace("db.example", "10.0.0.7"),
        POSTGRES.replace("db.example", "db.example."),
        POSTGRES.replace(":5432", ":6432"),
        "sqlite:///file:clinic.db?uri=true",
    ],
)
def test_queries_of_two_addresses_are_asked_about(site: Site, url: str) -> None:
    """One database has many names."""
    _, unclear = site.read(section("one", POSTGRES, query=ALL), section("two", url, query=ALL))
    assert len(unclear) == 1
    assert unclear[0].startswith("one and two query databases whose addresses may lead to one: if a person can be in")


def test_a_copy_of_a_file_is_asked_about(site: Site) -> None:
    (site.home.path / "copy.csv").write_bytes((site.home.path / "patients.csv").read_bytes())
    _, unclear = site.read(section("one"), section("two", "copy.csv"))
    assert len(unclear) == 1
    assert unclear[0].startswith("one and two read files of equal content: if a person can be in both, write the same")
    for budgets in (("x", "x"), ("x", "y")):
        _, unclear = site.read(section("one", budget=budgets[0]), section("two", "copy.csv", budget=budgets[1]))
        assert unclear == []


@pytest.mark.parametrize(
    "url",
    ["duckdb://", "duckdb:///scratch.duckdb", "spark://?spark.master=local[2]", "spark://?", "databricks://host/x"],
)
def test_an_engine_that_reads_files_is_asked_about_beside_a_file(site: Site, url: str) -> None:
    engine = section("two", url, query=f"SELECT * FROM '{site.home.path}/patients.csv'")
    _, unclear = site.read(section("one"), engine)
    assert len(unclear) == 1
    assert unclear[0].startswith("one and two may read one file, as the query of an engine like duckdb or Spark reads")
    _, unclear = site.read(section("one"), section("three", POSTGRES, query=ALL, budget="x"), engine)
    assert len(unclear) == 2
    for budget in ("x", "y"):
        _, unclear = site.read(section("one", budget="x"), engine + f'\nbudget = "{budget}"')
        assert unclear == []


def test_a_budget_is_not_called_like_another_section(site: Site) -> None:
    (site.home.path / "other.csv").touch()
    _, unclear = site.read(section("one", "other.csv", budget="two"), section("two"))
    assert unclear == ["one names the budget 'two', which is the name of another section: choose another name"]

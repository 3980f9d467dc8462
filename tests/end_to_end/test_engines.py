"""A run over HTTPS of parties that count in PostgreSQL, in duckdb and here: exact totals, and nothing left behind."""

import psycopg
import pytest

from tests.support.engine_cluster import NO_NOISE, check_totals, engines_in, here, in_duckdb, in_postgres, parties_in
from tests.support.postgres import postgres_server


@pytest.fixture(scope="module")
def url():
    with postgres_server() as found:
        yield found


@pytest.fixture(scope="module")
def engines(no_process_is_left, tmp_path_factory, url):
    places = {"Nord": in_postgres(url), "Süd": in_duckdb, "Ost": here}
    with parties_in(tmp_path_factory.mktemp("engines"), places) as found:
        yield found


def test_the_totals_are_exact_and_the_manifest_says_who_counted(engines, url):
    run = engines.finished("Nord", "Süd", "Ost", epsilon=NO_NOISE)
    assert check_totals(engines, run) >= 5
    assert engines_in(engines, run) == {"Nord": "postgresql", "Süd": "duckdb", "Ost": ""}
    for name in ("Nord", "Süd"):
        engines.sites[name].running.wait_for("run ended")
    with psycopg.connect(url) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
    assert tables == [("patients",)]


def test_check_doctor_and_a_request_say_what_it_costs(engines):
    told = engines.sites["Nord"].cli("check")["datasets"]["patients"]
    assert told["fits"]
    assert told["engine"].startswith("counted in postgresql:///postgres, no row comes here; a run reads the table 2")
    run = engines.begin("Nord", "Süd", "Ost")
    engines.until(run, "finished")
    (request,) = engines.sites["Nord"].cli("requests", run)
    assert request["engine"]["shown"] == "postgresql:///postgres"
    assert 3 < request["engine"]["scans"] < 30

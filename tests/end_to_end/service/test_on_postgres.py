"""The curator with PostgreSQL as its store: a run over sockets, a restart in the middle, the same results."""

from pathlib import Path

from tests.end_to_end.cluster import cluster
from tests.support.postgres import postgres_server

PARTIES = ("north", "south")


def test_a_run_finishes_on_postgresql_although_the_curator_is_killed_in_it(tmp_path: Path) -> None:
    with (
        postgres_server() as url,
        cluster(tmp_path / "cluster", env={"SUBN_CURATOR_DATABASE_URL": url}) as home,
    ):
        home.add(*PARTIES)
        home.enrol(*PARTIES)
        home.acquaint(*PARTIES)
        home.serve("north")
        run = home.begin(*PARTIES)
        home.curator.stop(9)
        home.start_curator()
        home.serve("south")
        home.until(run, "finished")
        assert not (tmp_path / "cluster/curator/curator.db").exists()
        assert len(home.get(run, "table.csv").splitlines()) == 1 + 60 * len(PARTIES)
        assert {home.sites[name].account()["spent"] for name in PARTIES} == {"2"}

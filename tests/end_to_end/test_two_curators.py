"""Two curators on one database, as processes: the second says who serves and ends, the first is not disturbed."""

import os
from pathlib import Path

from tests.end_to_end.cluster import cluster, command, wait


def test_a_second_curator_ends_with_the_first_ones_number(tmp_path: Path) -> None:
    with cluster(tmp_path / "cluster") as home:
        second = command("subn-curator", "serve", "--home", tmp_path / "cluster/curator", "--port", "0")
        assert second.returncode == 2
        assert f"process {home.curator.process.pid} on {os.uname().nodename} serves this database" in second.stderr
        assert home.http.get("/readyz").status_code == 200
        # Commands beside the service are not concerned.
        assert command("subn-curator", "code", "north", "--home", tmp_path / "cluster/curator").returncode == 0


def test_a_curator_that_is_displaced_stops_and_says_why(tmp_path: Path) -> None:
    with cluster(tmp_path / "cluster") as home:
        (tmp_path / "cluster/curator/curator.db.lock").unlink()
        first, url = home.curator, home.url
        home.url = ""
        home.start_curator()
        assert wait(lambda: first.process.poll() is not None, "the displaced curator to end")
        assert (first.process.returncode, url != home.url) == (1, True)
        assert "another curator serves this database now" in first.log.read_text()
        assert home.http.get("/readyz").status_code == 200

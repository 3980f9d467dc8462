"""A run with wavelet noise between real processes, with real cryptography; what is published is read back whole."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np

from curator.results.publication import load_knowledge
from protocol.run.agreement import agree
from protocol.stages.registry import blank_columns
from tests.end_to_end.cluster import cluster
from tests.end_to_end.service.test_runs import check_books
from tests.support.small_runs import LONG

NAMES = ("Nord", "West")


def test_a_run_over_http_publishes_counts_with_wavelet_noise(no_process_is_left: None, tmp_path: Path) -> None:
    with cluster(tmp_path / "cluster", LONG) as home:
        home.add(*NAMES, rows=300)
        home.acquaint(*NAMES)
        home.enrol(*NAMES)
        home.serve(*NAMES)
        wishes = {"epsilon": "4", "method": "guided", "noise": "selected", "noise_shape": "wavelet", "insiders": 1}
        planned = home.http.post("/v1/plans", json=home.body(*NAMES, **wishes)).json()
        assert any("days, code lies in wavelets" in why for why in planned["why"])
        run = home.finished(*NAMES, **wishes)
        manifest = check_books(home, run)
        terms = agree(manifest.plan, LONG)
        assert terms.plan.noise_shape == "wavelet"
        assert sum(one.charge for one in manifest.parties[0].receipts) == terms.price(0) <= Fraction(4)
        for name in ("tables.json", "network.json"):
            (tmp_path / name).write_bytes(home.get(run, name))
        report = json.loads(home.get(run, "report.json"))
        found = load_knowledge(tmp_path, terms).released
        for blank, one in zip(blank_columns(terms), found, strict=False):
            assert (one.table.variables, one.table.variance, one.table.noise) == (
                blank.variables,
                blank.variance,
                blank.noise,
            )
            if one.table.noise is not None:
                assert one.table.counts.sum() == 600
                coefficients = one.table.noise.tree.coefficients(one.table.counts)
                assert (coefficients == np.round(coefficients)).all()  # whole numbers left the parties
        assert [one["variance"] for one in report["released"]][:4] == [one.table.variance for one in found[:4]]
        assert home.get(run, "table.csv", rows="50").count(b"\n") == 51

"""The document of `tests.benchmarks.family`: what it says follows from the results."""

from curator.experiments.sweep.figures import means
from tests.benchmarks.family import document, named


def record(data, measured, seed=1, **options):
    outcome = {"measured": measured, "bytes": 1, "seconds": 1.0}
    return {"data": data, "options": options, "seed": seed, "label": "", "outcome": outcome}


def lines(*records):
    return "\n\n".join(document(named(means(records)), ["too much noise"])).splitlines()


def test_every_figure_stands_in_its_cell():
    run = {"epsilon": "0.2", "parties": "3", "method": "jtree"}
    found = lines(
        record("adult", {"2-way": 0.1, "3-way": 0.2}, **run),
        record("adult", {"2-way": 0.2, "3-way": 0.4}, seed=2, **run),
        record("adult", {"2-way": 0.05, "3-way": 0.07}, **(run | {"parties": "10"})),
        record("retail-wide", {"2-way": 0.01, "8-way": 0.03}, epsilon="1", parties="1", method="privabn"),
        record("retail-wide", {"2-way": 0.02}, epsilon="1", design="priview"),
        record("adult", {"2-way": 0.3}, epsilon="0.1", design="nocd", encoding="binary"),
        record("adult-classified", {"wrong about income": 0.17}, epsilon="0.8", parties="2", method="independent"),
    )
    assert found.count("| JTree | 0.1500 (0.3000) |") == 1
    assert "| JTree | 0.1500 (0.3000) | 0.0500 (0.0700) |" in found
    assert "| PrivABN | 0.0100 | - | - | 0.0300 |" in found
    assert "| views, PriView's pairs | 0.0200 | - | - | - |" in found
    assert "| views, NOCD | 0.3000 |" in found
    assert "| Independent | 0.1700 |" in found
    assert "- too much noise" in found
    assert "Runs of a setting: 1 to 2, of views 1." in found[2]

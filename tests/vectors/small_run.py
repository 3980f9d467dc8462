"""A whole small run from fixed keys, fixed rows and keyed streams, in numbers that every machine works out alike.

The cryptography is left out (`ClearSums`), because sealing and key generation draw from the system on their own.
"""

import hashlib
from fractions import Fraction
from typing import Any

import numpy as np

from crypto.randomness import Stream
from protocol.messages.tasks import decode
from protocol.run.synthesis import synthetic_codes
from tests.support.small_runs import BITS, CITIES, LONG, MIXED, Driver, terms_of

# name: schema, rows of each party, wishes
SPLIT = (Fraction(1, 2), Fraction(2), Fraction(1), Fraction(3, 2))
RUNS: dict[str, tuple[Any, tuple[int, ...], dict[str, Any]]] = {
    "accumulate over mixed attributes": (MIXED, (400, 250, 150), {"split": SPLIT}),
    "joint over bits": (BITS, (300, 200), {"split": SPLIT, "update": "joint", "rounds": 2, "noise": "distributed"}),
    "guided over mixed attributes": (
        MIXED,
        (400, 250, 150),
        {"split": SPLIT, "method": "guided", "further": (1, 1, 0), "rounds": 1},
    ),
    "guided with merged categories": (
        CITIES,
        (400, 250, 150),
        {"split": SPLIT, "method": "guided", "views": "single", "further": (1, 0, 0), "rounds": 1},
    ),
    "guided with wavelets": (
        LONG,
        (400, 250, 150),
        {"split": SPLIT, "method": "guided", "further": (1, 0, 0), "rounds": 1, "noise_shape": "wavelet"},
    ),
    "turns over bits": (BITS, (300, 200), {"update": "turns"}),
    "turns over halves": (
        CITIES,
        (400, 250, 150),
        {"split": SPLIT, "update": "turns", "views": "halves", "merging": True, "further": (1, 0, 1)},
    ),
    "replace over bits": (BITS, (300, 200), {"split": (*SPLIT[:3], Fraction(1, 2)), "update": "replace"}),
    "zcdp over mixed attributes": (MIXED, (400, 250, 150), {"privacy": "zcdp", "noise": "distributed"}),
    "independent": (BITS, (200, 100), {"split": (Fraction(2), Fraction(3)), "method": "independent"}),
    "privbayes over bits": (BITS, (200, 100), {"split": (Fraction(2), Fraction(3)), "method": "privbayes"}),
    "jtree over bits": (BITS, (300, 200), {"split": (Fraction(2), Fraction(3)), "method": "jtree"}),
    "jtree over halves": (
        CITIES,
        (400, 250, 150),
        {"split": (Fraction(2), Fraction(3)), "method": "jtree", "noise": "distributed", "views": "halves"},
    ),
    "privabn over mixed attributes": (
        MIXED,
        (400, 250, 150),
        {"split": (Fraction(2), Fraction(3)), "method": "privabn", "noise": "distributed"},
    ),
    "privbayes over mixed attributes": (
        MIXED,
        (200, 100),
        {"split": (Fraction(2), Fraction(3)), "method": "privbayes", "family_tables": "every", "noise": "selected"},
    ),
    "dp-ccbn": (BITS, (200, 100), {"split": (Fraction(2), Fraction(3)), "method": "dp-ccbn", "degree": 1}),
}
SYNTHETIC_ROWS = 5


def run_vector(name: str) -> dict[str, Any]:
    """What the run is made of and what comes out, as JSON."""
    schema, rows, wishes = RUNS[name]
    insiders = 0 if wishes.get("update") == "replace" else 1
    terms = terms_of(schema, rows, epsilon=5, insiders=insiders, **wishes)
    driver = Driver(terms, fixed_codes(schema, rows), clear=True).finish()
    known = driver.state.knowledge
    batches = synthetic_codes(terms, known, SYNTHETIC_ROWS, Stream.keyed(b"vectors", "synthesis"))
    columns = [np.concatenate(column) for column in zip(*batches, strict=True)]
    return {
        "plan_hash": terms.plan_hash,
        "messages": [[decode(data, "").kind, hashlib.sha256(data).hexdigest()] for data in driver.messages],
        "network": [[family.child, *family.parents] for family in known.network.families],
        "models": [[[f.child, *f.parents] for f in model.network.families] for model in known.models],
        "released": [
            {"step": one.step, "variables": list(one.table.variables), "counts": one.table.counts.ravel().tolist()}
            for one in known.released
        ],
        "synthetic_rows": np.stack(columns, axis=1).tolist(),
    }


def fixed_codes(schema: Any, rows: tuple[int, ...]) -> list[list[Any]]:
    """Rows from a keyed stream: each attribute follows the one before it three times out of four."""
    stream, parties = Stream.keyed(b"vectors", "rows"), []
    for count in rows:
        columns: list[Any] = []
        for size in schema.sizes:
            fresh = stream.words32(count) % np.uint32(size)
            follows = stream.words32(count) % np.uint32(4) > 0
            columns.append(np.where(follows, columns[-1] % size, fresh).astype(np.uint8) if columns else fresh)
        parties.append([column.astype(np.uint8) for column in columns])
    return parties

"""How many instructions the hottest kernels take, counted by valgrind: the same on a busy machine and on a quiet one.

The kernels are those in which whole runs spend most of their time, apart from reading, which a library does: pairs are
counted, rows are drawn, and packed ciphertexts are made. Keys and data are fixed. The counts are not exact, as
addresses of memory play a part; they repeat within a few thousandths. They change with numpy, gmpy2 and Python.
"""

import gc
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import gmpy2
import numpy as np

from crypto.paillier.packing import Packing
from crypto.paillier.public import PublicKey
from crypto.randomness import Stream
from crypto.sampling.laplace import discrete_laplace, laplace_bound
from protocol.model.systematic_sampling import cumulative_shares, systematic
from protocol.tables.counting import Rows
from protocol.tables.domain import Domain
from tests.support.blinders import blinder_of

NO_COUNTER = "instructions are not counted: valgrind is missing (Debian: apt-get install valgrind)"
_ROWS, _CELLS, _TOTAL, _ALPHA = 20_000, 200, 10_000, Fraction(1, 20)
_MARK = "getppid"  # a function of the C library that only this module calls: a count ends whenever it is called


def _counting() -> Callable[[], object]:
    sizes = (16, 7, 2, 41, 8)
    columns = [np.random.default_rng(1).integers(0, size, _ROWS).astype(np.uint8) for size in sizes]
    pairs = list(combinations(range(len(sizes)), 2))
    return lambda: Rows(Domain.of_sizes(sizes), columns).tables(pairs)


def _drawing() -> Callable[[], object]:
    random, stream = np.random.default_rng(1), Stream.keyed(b"kernels")
    cumulative, situation = cumulative_shares(random.random((16, 16))), random.integers(0, 16, _ROWS)
    return lambda: [systematic(cumulative, situation, stream) for _ in range(5)]


def _encrypting() -> Callable[[], object]:
    """Blind noise and values of one party. Any odd number takes as many steps as a modulus, and powers of 2 fit it."""
    stream = Stream.keyed(b"kernels")
    key = PublicKey((1 << 2047) + 2 * stream.bits(2000) + 1)
    packing = Packing.fit(key.bits, _TOTAL, 2 * laplace_bound(_ALPHA))
    count = packing.ciphertexts(_CELLS)
    values, masks = np.full(_CELLS, _TOTAL // _CELLS), [0] * count
    bit = gmpy2.powmod(2, stream.bits(2000), key.n_squared)
    blinder = blinder_of(key, bit, packing, laplace_bound(_ALPHA), count, stream)

    def act() -> object:
        return blinder.contribution(values, blinder.blind(discrete_laplace(_ALPHA, _CELLS, stream)), masks)

    return act


KERNELS: Mapping[str, Callable[[], Callable[[], object]]] = {
    "pairs of rows counted": _counting,
    "rows drawn": _drawing,
    "packed ciphertexts made": _encrypting,
}


def instructions() -> dict[str, int]:
    """Count the instructions of every kernel; none where there is no counter."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "counts"
        fixed = {"PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}
        command = [valgrind, "--tool=callgrind", f"--callgrind-out-file={out}", f"--dump-before={_MARK}"]
        command += [sys.executable, "-m", "tests.benchmarks.kernels"]
        subprocess.run(command, env=os.environ | fixed, check=True, capture_output=True)
        # A kernel's own part ends at its second mark; the part before was its preparation.
        parts = [int(re.findall(r"^totals: (\d+)", (out.parent / f"counts.{2 * number + 2}").read_text(), re.M)[0])
                 for number in range(len(KERNELS))]  # fmt: skip
    return dict(zip(KERNELS, parts, strict=True))


def main() -> None:
    gc.disable()  # when it runs, and over how many objects, depends on what else is loaded
    for prepare in KERNELS.values():
        act = prepare()
        act()  # what is worked out only once
        os.getppid()
        act()
        os.getppid()


if __name__ == "__main__":
    main()

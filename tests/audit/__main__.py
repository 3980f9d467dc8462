"""The privacy audit at length: `python -m tests.audit [FILE]` prints a table and writes it as JSON.

It fails if a bound exceeds a price, or if a broken variant is not found out.
"""

import json
import sys
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter

from tests.audit.catalogue import BROKEN, RELEASED, audited
from tests.audit.quantity import Finding

CONFIDENCE = 0.999  # of all rows of the table together
_ROWS = (("released", RELEASED), ("deliberately broken: the bound has to exceed the price", BROKEN))
_FORMAT = "{:<46} {:>7} {:>8} {:>7} {:>7} {:>7} {:>9}  {}"


def main(arguments: list[str]) -> int:
    out = Path(arguments[0]) if arguments else Path("build/audit.json")
    began = perf_counter()
    doubt = (1 - CONFIDENCE) / (len(RELEASED) + len(BROKEN))
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        findings = list(pool.map(partial(audited, doubt=doubt), [*RELEASED, *BROKEN]))
    _print(findings)
    report = {"confidence": CONFIDENCE, "quantities": [finding.to_json() for finding in findings]}
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    wrong = [finding.quantity for finding in findings if not finding.is_as_expected]
    print(f"\n{len(findings)} quantities in {perf_counter() - began:.0f} s; {len(wrong)} not as expected; {out}")
    return 1 if wrong else 0


def _print(findings: list[Finding]) -> None:
    print(f"Lower bounds on epsilon, all of them right with confidence {CONFIDENCE:.1%} together (Clopper-Pearson,")
    print("Bonferroni). `law`: epsilon at the same delta by the exact law; `most`: the largest loss of one trial.\n")
    left = iter(findings)
    for title, entries in _ROWS:
        print(_FORMAT.format(title, "price", "delta", "bound", "law", "most", "trials", ""))
        for _ in entries:
            one = next(left)
            price, delta = float(Fraction(one.price)), float(Fraction(one.delta))
            law, most = ("" if number is None else f"{number:.4f}" for number in (one.exact, one.most))
            print(
                _FORMAT.format(
                    one.quantity,
                    f"{price:.4f}",
                    f"{delta:.0e}" if delta else "0",
                    f"{one.bound:.4f}",
                    law,
                    most,
                    one.trials,
                    "" if one.is_as_expected else "NOT AS EXPECTED",
                )
            )
        print()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

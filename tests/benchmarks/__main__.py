"""All benchmarks, one after the other, or those that are named: `python -m tests.benchmarks [NAME ...]`.

tests/benchmarks/beside_peers.py runs only where it is named. It needs the peers' packages (`make build/peers/ready`)
and half an hour.
"""

import sys
from importlib import import_module

BENCHMARKS = (
    "sampler",
    "scoring",
    "covering",
    "synthesis_speed",
    "secure_sum",
    "costs",
    "service",
    "parties",
    "pages",
    "numbers",
    "rows_in",
    "wide",
    "writing",
)


def main(names: list[str]) -> None:
    for name in names or BENCHMARKS:
        print(f"\n=== {name}", flush=True)
        module = import_module(f"tests.benchmarks.{name}")
        module.main([]) if name == "costs" else module.main()


if __name__ == "__main__":
    main(sys.argv[1:])

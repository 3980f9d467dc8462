"""`subn demo` on the command line.

It does not know what is demonstrated (`curator.experiments.demo`), and imports that only to demonstrate it.
"""

import argparse
import signal
import tempfile
from pathlib import Path
from types import FrameType

from curator.operator.plan_options import add_plan_option
from protocol.errors import PlanError
from protocol.exact import exact
from protocol.options import PLAN_OPTIONS

MOST_PARTIES = 50
_OPTIONS = ("method", "preset", "noise")


def add_demo_options(demo: argparse.ArgumentParser) -> None:
    demo.description = (
        "Make up hospitals, start a curator and a party process for each of them on this machine, enrol them, run "
        "the protocol with real keys, publish the table, measure how good it is, and stop everything. Without "
        "--method, --preset and --noise there are two runs over the same hospitals: the paper's five phases (dp-subn, "
        "Paillier) and the recommended method."
    )
    for name in _OPTIONS:
        add_plan_option(demo, PLAN_OPTIONS[name])
    demo.set_defaults(**dict.fromkeys(_OPTIONS))
    demo.add_argument("--parties", type=int, default=3, metavar="K", help="number of hospitals (%(default)s)")
    demo.add_argument(
        "--epsilon", default="1", metavar="E", help="the most that each hospital spends in a run (%(default)s)"
    )
    demo.add_argument("--out", type=Path, metavar="DIR", help="a new folder for everything (a temporary one)")
    demo.add_argument(
        "--keep", action="store_true", help="leave everything running, and print the addresses and how to stop it"
    )
    demo.add_argument(
        "--ask",
        action="store_true",
        help="be hospital-1's data owner and the operator yourself, in a browser, in one run",
    )
    demo.set_defaults(run=_demo)


def _demo(chosen: argparse.Namespace) -> int:
    _check(chosen)
    from curator.experiments.demo import DemoOptions, demonstrate

    folder = _new_folder(chosen.out)
    former = signal.signal(signal.SIGTERM, _interrupt)
    try:
        wishes = {name: getattr(chosen, name) for name in _OPTIONS if getattr(chosen, name) is not None}
        demonstrate(DemoOptions(wishes, chosen.parties, chosen.epsilon, folder, chosen.keep, chosen.ask))
    finally:
        signal.signal(signal.SIGTERM, former)
    return 0


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _check(chosen: argparse.Namespace) -> None:
    if not 2 <= chosen.parties <= MOST_PARTIES:
        raise PlanError(f"--parties is {chosen.parties}: the demonstration takes 2 to {MOST_PARTIES} hospitals")
    try:
        exact(chosen.epsilon)
    except ValueError as error:
        raise PlanError(f"--epsilon: {error}") from None


def _new_folder(out: Path | None) -> Path:
    folder = out or Path(tempfile.mkdtemp(prefix="dp-subn-demo-"))
    if out is not None and folder.exists() and any(folder.iterdir()):
        raise PlanError(f"{folder} is not empty: name a new folder")
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    return folder.absolute()

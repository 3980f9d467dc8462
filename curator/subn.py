"""`subn`: the operator's command line.

It does not know what the commands do. Every family of commands has its own module, which is imported when one of its
commands is chosen.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial

from curator.errors import CuratorUnreachable
from curator.experiments.processes import ProgramFailed
from protocol.errors import PeerError, SubnError
from protocol.services.command_help import AddOptions, CommandParser, GroupedParser
from protocol.text import printable_lines

FAILED, USAGE_ERROR, INTERRUPTED = 1, 2, 130

_EXAMPLES = (
    ("three made-up hospitals and a real run, nothing to prepare", "subn demo"),
    ("what would it cost, and how good could it be?", "subn plan --schema schema.json --epsilon 0.8"),
    ("start it, and see it move", "subn run --schema schema.json --epsilon 0.8 && subn watch RUN"),
    ("take the table, and check what it promises", "subn get RUN --out result && subn verify result/manifest.json"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # threads that share small matrices wait for each other
    parser = make_parser()
    chosen = parser.parse_args(arguments)
    try:
        return int(chosen.run(chosen))
    except (CuratorUnreachable, ProgramFailed, PeerError) as error:
        return _complain(str(error), FAILED)
    except SubnError as error:
        return _complain(str(error), USAGE_ERROR)
    except OSError as error:
        return _complain(f"{error.filename or 'a file'}: {error.strerror}", FAILED)
    except KeyboardInterrupt:
        return _complain("interrupted", INTERRUPTED)


def _complain(text: str, code: int) -> int:
    print(f"subn: {printable_lines(text)}", file=sys.stderr)
    return code


def make_parser() -> GroupedParser:
    parser = GroupedParser(
        groups={title: tuple(commands) for title, commands in _COMMANDS.items()},
        examples=_EXAMPLES,
        prog="subn",
        description=(
            "Publish one synthetic table of many parties' records under differential privacy: plan and run it at a "
            "curator, or try everything out on this machine."
        ),
        epilog="Commands at a curator take its address from --url or SUBN_URL, a key from --key-file or SUBN_KEY_FILE.",
    )
    commands = parser.add_commands()
    for family in _COMMANDS.values():
        for name, (text, add_options) in family.items():
            commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.", add_options=add_options)
    return parser


def _demo(parser: CommandParser) -> None:
    from curator.experiments.demo_command import add_demo_options

    add_demo_options(parser)


def _sample_data(parser: CommandParser) -> None:
    from curator.experiments.simulate_command import add_sample_data_options

    add_sample_data_options(parser)


def _simulate(parser: CommandParser) -> None:
    from curator.experiments.simulate_command import add_simulate_options

    add_simulate_options(parser)


def _evaluate(parser: CommandParser) -> None:
    from curator.experiments.evaluate_command import add_evaluation_options

    add_evaluation_options(parser)


def _sweep(parser: CommandParser) -> None:
    from curator.experiments.sweep.command import add_sweep_options

    add_sweep_options(parser)


def _operator(command: str, parser: CommandParser) -> None:
    from curator.operator.commands import add_operator_options

    add_operator_options(command, parser)


def _schemas(parser: CommandParser) -> None:
    from curator.operator.schema_commands import add_schema_options

    add_schema_options(parser)


def _verify(parser: CommandParser) -> None:
    from curator.operator.verify import add_verify_options

    add_verify_options(parser)


# By group: every command, its purpose, and the function that adds its options.
_COMMANDS: Mapping[str, Mapping[str, tuple[str, AddOptions]]] = {
    "try it out, on this machine": {
        "demo": ("made-up hospitals, a curator and a real run on this machine", _demo),
        "sample-data": ("write made-up hospitals' tables and their schema, for trying things out", _sample_data),
        "simulate": ("run the whole protocol in one process over one table, divided among made-up parties", _simulate),
        "evaluate": (
            "measure how well a synthetic table matches the real rows; never publish the result",
            _evaluate,
        ),
        "sweep": ("simulate a whole grid of settings, seed by seed, and draw the results", _sweep),
    },
    "prepare, at a curator": {
        "schemas": ("list, add and show schemas, and help with writing one", _schemas),
        "parties": ("list parties, make an enrolment code, revoke a party", partial(_operator, "parties")),
    },
    "run": {
        "plan": ("price a run before anything is spent", partial(_operator, "plan")),
        "run": ("start a run; it waits for its parties to join", partial(_operator, "run")),
        "runs": ("list all runs, the oldest first", partial(_operator, "runs")),
        "watch": ("show a run's progress until it ends; --json: one event per line", partial(_operator, "watch")),
        "wait": ("wait until a run ends", partial(_operator, "wait")),
        "cancel": ("end a run; what parties have spent stays spent", partial(_operator, "cancel")),
    },
    "take the result": {
        "get": ("download a run's results; --rows draws a new table of any length", partial(_operator, "get")),
        "verify": ("check a manifest off-line: signatures, budgets, and the published files", _verify),
    },
}

"""`subn`: the operator's command line.

It does not know what the commands do: every family of them has a module of its own.
"""

import sys
from collections.abc import Sequence
from importlib.metadata import version

from curator.experiments.demo import add_demo_command
from curator.experiments.evaluate_command import add_evaluation_command
from curator.experiments.processes import ProgramFailed
from curator.experiments.simulate_command import add_experiment_commands
from curator.experiments.sweep.command import add_sweep_command
from curator.operator.client import CuratorUnreachable
from curator.operator.commands import add_operator_commands
from curator.operator.verify import add_verify_command
from protocol.errors import PeerError, SubnError
from protocol.services.command_help import GroupedParser
from protocol.text import printable_lines

FAILED, USAGE_ERROR, INTERRUPTED = 1, 2, 130

_GROUPS = {
    "try it out, on this machine": ("demo", "sample-data", "simulate", "evaluate", "sweep"),
    "prepare, at a curator": ("schemas", "parties"),
    "run": ("plan", "run", "runs", "watch", "wait", "cancel"),
    "take the result": ("get", "verify"),
}
_EXAMPLES = (
    ("three made-up hospitals and a real run, nothing to prepare", "subn demo"),
    ("what would it cost, and how good could it be?", "subn plan --schema schema.json --epsilon 0.8"),
    ("start it, and see it move", "subn run --schema schema.json --epsilon 0.8 && subn watch RUN"),
    ("take the table, and check what it promises", "subn get RUN --out result && subn verify result/manifest.json"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
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


def _parser() -> GroupedParser:
    parser = GroupedParser(
        groups=_GROUPS,
        examples=_EXAMPLES,
        prog="subn",
        description=(
            "Publish one synthetic table of many parties' records under differential privacy: plan and run it at a "
            "curator, or try everything out on this machine."
        ),
        epilog="Commands at a curator take its address from --url or SUBN_URL, a key from --key-file or SUBN_KEY_FILE.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {version('dp-subn')}")
    commands = parser.add_commands()
    add_experiment_commands(commands)
    add_evaluation_command(commands)
    add_sweep_command(commands)
    add_operator_commands(commands)
    add_verify_command(commands)
    add_demo_command(commands)
    return parser

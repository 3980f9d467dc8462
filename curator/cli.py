"""`subn`: the operator's command line.

It does not know what the commands do: every family of them has a module of its own.
"""

import argparse
import sys
from collections.abc import Sequence

from curator.demo import add_demo_command
from curator.evaluation_cli import add_evaluation_command
from curator.experiment_cli import add_experiment_commands
from curator.operator_cli import add_operator_commands
from curator.operator_client import CuratorUnreachable
from curator.processes import ProgramFailed
from curator.sweep_cli import add_sweep_command
from curator.verify_cli import add_verify_command
from protocol.errors import PeerError, SubnError

FAILED, USAGE_ERROR, INTERRUPTED = 1, 2, 130


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
    print(f"subn: {text}", file=sys.stderr)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="subn",
        description="Publish one synthetic table of many parties' records under differential privacy.",
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    add_experiment_commands(commands)
    add_evaluation_command(commands)
    add_sweep_command(commands)
    add_operator_commands(commands)
    add_verify_command(commands)
    add_demo_command(commands)
    return parser

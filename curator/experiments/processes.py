"""Programs that are started and stopped together, each with its own process group and log file.

It does not know what the programs do.
"""

import json
import os
import signal
import subprocess
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from types import TracebackType
from typing import Any

from protocol.errors import OperatorError, SubnError

PATIENCE = 30.0  # seconds for a program to get ready
GRACE = 10.0  # seconds to stop before it is killed
_POLL = 0.05
_LAST_LINES = 15


class ProgramFailed(SubnError):
    pass


@dataclass(frozen=True)
class Program:
    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def log_lines(self) -> Iterator[dict[str, Any]]:
        for line in self.log.read_text(encoding="utf-8").splitlines():
            try:
                found = json.loads(line)
            except ValueError:
                continue
            if isinstance(found, dict):
                yield found

    def wait_for(self, event: str) -> dict[str, Any]:
        """Wait for the first line of the program's log with this event, and return it."""
        deadline = monotonic() + PATIENCE
        while True:
            for line in self.log_lines():
                if line.get("event") == event:
                    return line
            self.require_alive()
            if monotonic() > deadline:
                raise ProgramFailed(f"{self.name} is not ready after {PATIENCE:g} s: see {self.log}")
            sleep(_POLL)

    def require_alive(self) -> None:
        if self.process.poll() is not None:
            last = "\n".join(self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LAST_LINES:])
            raise ProgramFailed(f"{self.name} stopped with exit code {self.process.returncode}:\n{last}")


@dataclass
class Programs:
    """A context that stops its programs when it is left. With `keep`, they go on running unless there was an error."""

    logs: Path
    keep: bool = False
    started: list[Program] = field(default_factory=list)

    def start(self, name: str, command: Sequence[str | Path]) -> Program:
        log = self.logs / f"{name}.log"
        with log.open("ab") as output:
            process = subprocess.Popen(  # noqa: S603
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        program = Program(name, process, log)
        self.started.append(program)
        return program

    def __enter__(self) -> "Programs":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if not (self.keep and kind is None):
            self.stop()

    def stop(self) -> None:
        for program in reversed(self.started):
            _signal(program, signal.SIGTERM)
        deadline = monotonic() + GRACE
        for program in self.started:
            try:
                program.process.wait(max(0.0, deadline - monotonic()))
            except subprocess.TimeoutExpired:
                _signal(program, signal.SIGKILL)
                program.process.wait()


def _signal(program: Program, number: int) -> None:
    # A program that has been waited for has no group any more, and another process may have its number.
    if program.process.poll() is None:
        os.killpg(program.process.pid, number)


def installed(script: str) -> Path:
    """Return the path of one of this installation's own commands."""
    path = Path(sysconfig.get_path("scripts")) / script
    if not path.is_file():
        raise OperatorError(f"{path} is missing: install the project with `make setup`")
    return path


def run(command: Sequence[str | Path], text: str | None = None) -> str:
    """Run a command and return its output. Raise ProgramFailed with its error output if it fails."""
    done = subprocess.run(  # noqa: S603
        [str(part) for part in command], input=text, capture_output=True, text=True, check=False
    )
    if done.returncode:
        named = " ".join(Path(part).name for part in command[:3])
        raise ProgramFailed(f"{named} failed ({done.returncode}): {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout

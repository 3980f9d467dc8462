"""Start the product's programs in processes of their own, each in a session of its own, and run them to their end.

They are forked by `tests.support.fork_server`, which saves more than a second of imports for each. `start_script`
starts the installed script instead, as a user would.
"""

import json
import os
import select
import socket
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import IO, Any, Protocol

SCRIPTS = Path(sysconfig.get_path("scripts"))
ROOT = Path(__file__).parents[2]


class Process(Protocol):
    """What tests ask of a process: `subprocess.Popen` has it too."""

    pid: int
    returncode: Any  # an int, or None while it lives

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...


class ForkedProcess:
    """A program that the fork server has started; its exit status comes through a pipe."""

    def __init__(self, command: Sequence[str], pid: int, status: int) -> None:
        self.args, self.pid, self.returncode = list(command), pid, None
        self._status, self._lock = status, Lock()

    returncode: int | None

    def poll(self) -> int | None:
        return self._await(0)

    def wait(self, timeout: float | None = None) -> int:
        found = self._await(timeout)
        if found is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return found

    def _await(self, seconds: float | None) -> int | None:
        with self._lock:
            if self.returncode is None and select.select([self._status], [], [], seconds)[0]:
                self.returncode = int(os.read(self._status, 16))
                os.close(self._status)
            return self.returncode


class Forks:
    """The line to the fork server, which begins with the first program and ends with the test run."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._server: subprocess.Popen[bytes] | None = None

    def start(self, command: Sequence[str], output: int, errors: int, env: Mapping[str, str]) -> ForkedProcess:
        with self._lock:
            if self._server is None:
                self._begin()
            status, told = os.pipe()
            request = json.dumps({"command": list(command), "env": dict(env), "folder": os.getcwd()}).encode()
            socket.send_fds(self._channel, [request], [output, errors, told])
            os.close(told)
            return ForkedProcess(command, int(self._channel.recv(16)), status)

    def _begin(self) -> None:
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            server = [sys.executable, "-m", "tests.support.fork_server", str(theirs.fileno())]
            self._server = subprocess.Popen(
                server, cwd=ROOT, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], start_new_session=True
            )

    def end(self) -> None:
        if self._server is not None:
            self._channel.close()
            self._server.wait(10)
            self._server = None


FORKS = Forks()


def start_program(program: str, *arguments: object, output: IO[bytes], env: Mapping[str, str] | None = None) -> Process:
    """The program as a process; what it prints and complains of goes to the file."""
    file = output.fileno()
    return FORKS.start(_command(program, arguments), file, file, {**os.environ, **(env or {})})


def start_script(program: str, *arguments: object, output: IO[bytes], env: Mapping[str, str] | None = None) -> Process:
    """Like `start_program`, but from the installed script, with a memory of its own."""
    return subprocess.Popen(
        _command(program, arguments),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        env={**os.environ, **(env or {})},
        start_new_session=True,
    )


def run_program(
    program: str, *arguments: object, env: Mapping[str, str] | None = None, timeout: float
) -> "subprocess.CompletedProcess[str]":
    """The program run to its end, with what it printed and what it complained of."""
    command = _command(program, arguments)
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = FORKS.start(command, output.fileno(), errors.fileno(), {**os.environ, **(env or {})})
        code = process.wait(timeout)
        texts = []
        for file in (output, errors):
            file.seek(0)
            texts.append(file.read().decode())
    return subprocess.CompletedProcess(command, code, *texts)


def _command(program: str, arguments: Sequence[object]) -> list[str]:
    return [str(SCRIPTS / program), *map(str, arguments)]

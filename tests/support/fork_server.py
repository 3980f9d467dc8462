"""Start the product's programs as processes without paying for their imports each time.

`python -m tests.support.fork_server CHANNEL` imports the programs once, and then forks a process for each that
`tests.support.programs` asks for over the channel (a Unix socket). Each process runs the installed entry point in a
session of its own, with its own environment and output, and ends as any other program ends.
"""

import json
import os
import selectors
import signal
import socket
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

LARGEST_REQUEST = 1 << 17
_SERVING = (
    "curator.server",
    "curator.service",
    "curator.operator.commands",
    "curator.operator.client",
    "party.service",
    "pyarrow.csv",
)  # imported when needed, and the reader of delimited text, which takes long to import

Main = Callable[[], int]


def programs() -> dict[str, Main]:
    """The entry points of the installed programs, with everything imported that they use."""
    for name in _SERVING:
        import_module(name)
    return {one.name: one.load() for one in entry_points(group="console_scripts") if one.name.startswith("subn")}


class ForkServer:
    """The parent of every program that was asked for: it tells each one's exit status through that one's pipe."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel, self._selector = channel, selectors.DefaultSelector()
        self._selector.register(channel, selectors.EVENT_READ)

    def serve(self) -> list[str] | None:
        """Return in each forked process with its command line, and in the server with None when nobody asks more."""
        while True:
            for key, _ in self._selector.select():
                if key.data is not None:
                    self._bury(key.fd, *key.data)
                    continue
                request, files, _, _ = socket.recv_fds(self._channel, LARGEST_REQUEST, 3)
                if not request:
                    return None
                command = self._fork(json.loads(request), *files)
                if command is not None:
                    return command

    def _fork(self, request: dict[str, Any], output: int, errors: int, status: int) -> list[str] | None:
        pid = os.fork()
        if pid == 0:
            self._become(request, output, errors)
            os.close(status)
            command: list[str] = request["command"]
            return command
        self._selector.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, status))
        os.close(output)
        os.close(errors)
        return None

    def _become(self, request: dict[str, Any], output: int, errors: int) -> None:
        """Make the forked process what was asked for, tell its number, and let go of all that is the server's."""
        os.setsid()
        for file, standard in ((output, 1), (errors, 2)):
            os.dup2(file, standard)
            os.close(file)
        os.environ.clear()
        os.environ.update(request["env"])
        os.chdir(request["folder"])
        self._channel.send(str(os.getpid()).encode())
        for key in list(self._selector.get_map().values()):
            os.close(key.fd)
            if key.data is not None:
                os.close(key.data[1])
        self._selector.close()
        self._channel.detach()

    def _bury(self, pidfd: int, pid: int, status: int) -> None:
        # Told before the process is waited for: until then its number is its own, and a signal to it does no harm.
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert ended is not None
        code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        os.write(status, str(code).encode())
        os.close(status)
        os.waitpid(pid, 0)
        self._selector.unregister(pidfd)
        os.close(pidfd)


def main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupted test run closes the channel
    known = programs()
    command = ForkServer(socket.socket(fileno=int(sys.argv[1]))).serve()
    if command is None:
        return 0
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = command
    return known[os.path.basename(command[0])]()


if __name__ == "__main__":
    sys.exit(main())

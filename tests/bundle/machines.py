"""Machines of several organisations: each in namespaces of its own, with podman that knows no image, on one wire.

It does not know what is installed on them.
"""

import shutil
from dataclasses import replace
from pathlib import Path
from signal import SIGKILL

from tests.bundle.conftest import engine_in
from tests.containers.machinery import Engine, run, wait
from tests.networks.wire import Wire

_ENTER = """#!/bin/sh
here=$PWD
exec nsenter --target {process} --net --mount --pid -- sh -c 'cd "$0" && exec "$@"' "$here" "$@"
"""
# The first process of a machine: it reaps what others leave, and all end with it.
_FIRST = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "catatonit", "-P")


class Machine:
    """A machine with an address on the wire; it can be switched off without warning, and on again."""

    def __init__(self, wire: Wire, address: str, prepared: Engine, folder: Path, reaches: str = "") -> None:
        """`reaches`: the only address that there is a way to; empty for all of the wire."""
        self.wire, self.address, self.folder, self.reaches = wire, address, folder, reaches
        folder.mkdir()
        self.enter = folder / "enter"
        self.engine = replace(engine_in(folder, prepared), within=(str(self.enter),))

    def switch_on(self) -> None:
        with (self.folder / "machine.log").open("ab") as log:
            program = str(shutil.which(_FIRST[0]))
            self._outer = self.wire.start(self.address, [program, *_FIRST[1:]], log, {})
        children = Path(f"/proc/{self._outer.pid}/task/{self._outer.pid}/children")
        first = wait(lambda: children.read_text().split(), f"{self.address} to be switched on")[0]
        wait(lambda: Path(f"/proc/{first}/comm").read_text() == "catatonit\n", "the machine's first process")
        self.enter.write_text(_ENTER.format(process=first))
        self.enter.chmod(0o755)
        self.shell("mount -t tmpfs tmpfs /run && mkdir /run/containers /run/lock")
        if self.reaches:
            self.shell(f"ip route replace {self.reaches}/32 dev leg && ip route del 10.77.0.0/24 dev leg")

    def switch_off(self) -> None:
        """As when the power fails: nothing is asked to end, and what was not on the disk is lost."""
        self._outer.send_signal(SIGKILL)  # its child ends with it, and that one's namespace with all processes
        self._outer.wait(30)
        self.enter.unlink(missing_ok=True)
        for lost in ("run", "tmp"):
            shutil.rmtree(self.folder / lost, ignore_errors=True)

    @property
    def is_on(self) -> bool:
        return self.enter.exists()

    def boot(self) -> None:
        """Switch on, and let podman-restart.service do what it does at boot."""
        self.switch_on()
        self.engine("start", "--all", "--filter", "restart-policy=always")

    def shell(self, script: str) -> None:
        command = [str(self.enter), "bash", "-euo", "pipefail", "-c", script]
        run(command, self.engine.environment, self.folder)

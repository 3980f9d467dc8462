"""A wire between namespaces: it carries their packets with delay, loss and a rate, and can be cut at every leg.

It does not know what the packets say. There is no netem in every kernel, but TUN devices are: each leg is one.
"""

import heapq
import os
import random
import selectors
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from threading import Lock, Thread
from time import monotonic
from typing import IO

from tests.networks.inside import leg

_LONGEST_QUEUE = 256  # packets on their way to one leg; more are dropped, as by a router
_LARGEST_PACKET = 1 << 16


@dataclass
class Line:
    """The state of one leg."""

    device: int
    delay: float = 0.0  # seconds, each way
    loss: float = 0.0
    rate: float = 0.0  # bits per second; 0 is as fast as it goes
    sends: bool = True
    receives: bool = True
    free_at: float = 0.0
    queued: int = 0
    carried: int = 0  # bytes


@dataclass
class Wire:
    folder: Path
    lines: dict[str, Line] = field(default_factory=dict)  # by address

    def __post_init__(self) -> None:
        self._selector, self._lock = selectors.DefaultSelector(), Lock()
        self._coming: list[tuple[float, int, Line, str, bytes]] = []
        self._number, self._random = count(), random.Random(7)
        self._wake, self._woken = os.pipe()
        self._selector.register(self._wake, selectors.EVENT_READ, "")
        self.resolv = self.folder / "resolv.conf"
        self._is_open = True
        self._thread = Thread(target=self._carry, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._is_open = False
        os.write(self._woken, b"x")
        self._thread.join(5)
        for line in self.lines.values():
            os.close(line.device)

    # Legs

    def attach(self, address: str, device: int | None = None) -> None:
        """A leg with this address; without a device, of the namespace that the test runs in."""
        with self._lock:
            former = self.lines.get(address)
            if former is not None:
                self._selector.unregister(former.device)
                os.close(former.device)
            found = leg(address) if device is None else device
            os.set_blocking(found, False)
            self.lines[address] = Line(found)
            self._selector.register(found, selectors.EVENT_READ, address)
        os.write(self._woken, b"x")

    def start(
        self, address: str, command: list[str], output: IO[bytes], env: Mapping[str, str]
    ) -> "subprocess.Popen[bytes]":
        """The command in namespaces of its own, with a leg at this address."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            words = ["unshare", "--net", "--mount", "--propagation", "private", sys.executable]
            words += ["-m", "tests.networks.inside", str(theirs.fileno()), address, str(self.resolv), *command]
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, **env},
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
            theirs.close()
            _, devices, _, _ = socket.recv_fds(ours, 64, 1)
            assert devices, f"{command[0]} got no leg: see its log"
            self.attach(address, devices[0])
            ours.send(b"x")
        return process

    # Conditions

    def set(self, *addresses: str, delay: float = 0.0, loss: float = 0.0, rate: float = 0.0) -> None:
        for address in addresses or tuple(self.lines):
            line = self.lines[address]
            line.delay, line.loss, line.rate = delay, loss, rate

    def cut(self, address: str, sends: bool = False, receives: bool = False) -> None:
        self.lines[address].sends, self.lines[address].receives = sends, receives

    def mend(self, address: str) -> None:
        self.cut(address, sends=True, receives=True)

    # The thread that carries

    def _carry(self) -> None:
        while self._is_open:
            wait = max(0.0, self._coming[0][0] - monotonic()) if self._coming else None
            for key, _ in self._selector.select(wait):
                if key.data:
                    self._take(key.data)
                else:
                    os.read(self._wake, 64)
            self._give()

    def _take(self, address: str) -> None:
        line = self.lines[address]
        for _ in range(64):
            try:
                packet = os.read(line.device, _LARGEST_PACKET)
            except OSError:  # nothing more for now, or the namespace has gone
                return
            self._send(line, packet)

    def _send(self, line: Line, packet: bytes) -> None:
        to = socket.inet_ntoa(packet[16:20]) if packet[0] >> 4 == 4 else ""
        other = self.lines.get(to)
        if other is None or not line.sends or other.queued >= _LONGEST_QUEUE:
            return
        if self._random.random() < line.loss + other.loss:
            return
        now, at = monotonic(), 0.0
        for one in (line, other):
            if one.rate:
                one.free_at = max(now, one.free_at) + 8 * len(packet) / one.rate
                at = max(at, one.free_at)
        other.queued += 1
        heapq.heappush(self._coming, (max(now, at) + line.delay + other.delay, next(self._number), line, to, packet))

    def _give(self) -> None:
        while self._coming and self._coming[0][0] <= monotonic():
            _, _, sender, to, packet = heapq.heappop(self._coming)
            line = self.lines[to]
            line.queued -= 1
            if line.receives and sender.sends:  # what was under way when a line was cut is lost
                line.carried += len(packet)
                try:
                    os.write(line.device, packet)
                except OSError:  # its namespace has gone: packets to it get lost
                    continue

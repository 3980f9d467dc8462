"""Plans worked out in processes of their own, each within limits of time and memory, a few at a time.

It does not know how a plan is worked out (`curator.runs.plan_worker`), or what the plan is for.
"""

import os
import socket
import subprocess
import sys
from contextlib import suppress
from threading import BoundedSemaphore, Event, Lock
from time import monotonic

from curator.errors import Abandoned, Busy
from curator.runs.planning import Answer, Planned, Wanted
from protocol import errors as protocol

MOST = 2  # processes
MOST_WAITING = 8
SECONDS = 60
BYTES = 2 << 30
_LOOK_SECONDS = 0.1  # between two looks whether anybody still wants the answer
_CHUNK = 1 << 16
_OWN_ENVIRONMENT = "SUBN_"  # settings and secrets of the service, which the workers do not need


class PlanWorkers:
    """A few processes, started when they are first needed. A plan that nobody waits for any more is given up."""

    def __init__(self, seconds: int = SECONDS, most_bytes: int = BYTES) -> None:
        self._seconds, self._most_bytes = seconds, most_bytes
        self._places, self._waiting = BoundedSemaphore(MOST), BoundedSemaphore(MOST + MOST_WAITING)
        self._idle: list[_Worker] = []
        self._lock = Lock()

    def __call__(self, wanted: Wanted, abandoned: Event) -> Planned:
        if not self._waiting.acquire(blocking=False):
            raise Busy("too many plans are being worked out: wait for a moment, then try again")
        try:
            while not self._places.acquire(timeout=_LOOK_SECONDS):
                _check_wanted(abandoned)
            try:
                return wanted.planned(self._answer(wanted, abandoned))
            finally:
                self._places.release()
        finally:
            self._waiting.release()

    @property
    def pids(self) -> tuple[int, ...]:
        """The process numbers of the workers that wait for a plan."""
        return tuple(worker.pid for worker in self._idle)

    def close(self) -> None:
        with self._lock:
            while self._idle:
                self._idle.pop().end()

    def _answer(self, wanted: Wanted, abandoned: Event) -> Answer:
        with self._lock:
            worker = self._idle.pop() if self._idle else _Worker(self._most_bytes)
        try:
            answer = worker.ask(wanted.model_dump_json().encode() + b"\n", monotonic() + self._seconds, abandoned)
        except BaseException:  # also when the service stops: nobody else would end this process
            worker.end()
            raise
        with self._lock:
            self._idle.append(worker)
        return Answer.model_validate_json(answer)


class _Worker:
    def __init__(self, most_bytes: int) -> None:
        self._line, theirs = socket.socketpair()
        environment = {name: value for name, value in os.environ.items() if not name.startswith(_OWN_ENVIRONMENT)}
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-m", "curator.runs.plan_worker", str(most_bytes)],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                env=environment | {"OPENBLAS_NUM_THREADS": "1"},
                start_new_session=True,  # an operator's Ctrl-C ends the service, which ends the worker
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, question: bytes, deadline: float, abandoned: Event) -> bytes:
        """Return the answer. Raise PlanError if there is none by the deadline."""
        answer = bytearray()
        try:
            self._line.settimeout(max(0.0, deadline - monotonic()))
            self._line.sendall(question)
            self._line.settimeout(_LOOK_SECONDS)
            while not answer.endswith(b"\n"):
                _check_wanted(abandoned)
                answer += self._some(deadline)
        except OSError as error:  # also the end of its patience with a worker that reads nothing
            raise _hopeless(f"the process ended ({type(error).__name__})") from None
        return bytes(answer)

    def _some(self, deadline: float) -> bytes:
        try:
            found = self._line.recv(_CHUNK)
        except TimeoutError:
            if monotonic() >= deadline:
                raise _hopeless("it took too long") from None
            return b""
        if not found:
            raise _hopeless("the process ended")
        return found

    def end(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()
        self._line.close()


def _check_wanted(abandoned: Event) -> None:
    if abandoned.is_set():
        raise Abandoned("nobody waits for this plan any more")


def _hopeless(why: str) -> protocol.PlanError:
    return protocol.PlanError(
        f"this plan could not be worked out: {why}. Leave attributes or values out of the schema, or choose views, "
        "method or encoding otherwise"
    )

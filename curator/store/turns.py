"""Turns at something that one thread at a time may change; what waits meanwhile is done in one turn.

It does not know what is changed, or what a transaction is.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Lock
from typing import Any

from curator.errors import CuratorError, StoreUnavailable

MOST_TOGETHER = 100  # done in one turn: whoever is first need not wait for all others


class Queued:
    """Something that waits to be done, and then its result or its error."""

    def __init__(self, what: Any) -> None:
        """Wait with `what` is to be done, or with None for a turn alone."""
        self.what = what
        self.result: Any = None
        self.error: BaseException | None = None
        self.is_done = False
        self.woken = Event()


class Turns:
    """Turns in the order of arrival. Whoever waits longer than `patience` seconds gives up; None waits for ever."""

    def __init__(self, patience: float | None = None) -> None:
        self._patience = patience
        self._mutex = Lock()
        self._is_taken = False
        self._line: deque[Queued] = deque()

    @property
    def waiting(self) -> int:
        """How many wait for a turn."""
        return len(self._line)

    @contextmanager
    def own(self) -> Iterator[None]:
        """Take a turn for this block alone."""
        self._wait(Queued(None))
        try:
            yield
        finally:
            self._pass_on()

    def shared(self, what: Any, carry_out: Callable[[Sequence[Queued]], None]) -> Any:
        """Return the result of `what`, or raise its error, once `carry_out` has done it in this thread or another.

        In its turn, `carry_out` gets this and everything else that waits to be shared, and notes results and errors.
        An error that it raises is everybody's.
        """
        mine = Queued(what)
        self._wait(mine)
        if not mine.is_done:
            self._lead(mine, carry_out)
        if mine.error is not None:
            raise mine.error
        return mine.result

    def _lead(self, mine: Queued, carry_out: Callable[[Sequence[Queued]], None]) -> None:
        together = [mine, *self._sharing(MOST_TOGETHER - 1)]
        try:
            carry_out(together)
        except BaseException as error:  # everybody learns it: nobody else would wake those who wait
            for one in together:
                one.error = _repeated(error)  # also of what was refused: it may rest on what is not stored now
        finally:
            for one in together:
                one.is_done = True
                one.woken.set()
            self._pass_on()

    def _wait(self, mine: Queued) -> None:
        """Return with the turn, or when it is not needed any more."""
        with self._mutex:
            if not self._is_taken:
                self._is_taken = True
                return
            self._line.append(mine)
        if mine.woken.wait(self._patience):
            return
        with self._mutex:
            is_still_waiting = mine in self._line
            if is_still_waiting:
                self._line.remove(mine)
        if is_still_waiting:
            raise StoreUnavailable(f"the curator's database has been busy for {self._patience} seconds: check its disk")
        mine.woken.wait()  # its turn has come in this moment, or it is being carried out

    def _sharing(self, most: int) -> list[Queued]:
        """Take everything out of the line that can be done in the present turn."""
        with self._mutex:
            found = [one for one in self._line if one.what is not None][:most]
            for one in found:
                self._line.remove(one)
            return found

    def _pass_on(self) -> None:
        with self._mutex:
            if self._line:
                self._line.popleft().woken.set()
            else:
                self._is_taken = False


def _repeated(error: BaseException) -> BaseException:
    """Return the error once more: several threads raise it."""
    return type(error)(str(error)) if isinstance(error, CuratorError) else error

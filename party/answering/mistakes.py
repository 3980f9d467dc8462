"""Errors behind a refusal: those that nobody foresaw, which stop no party, and those that blame another party.

It does not know tasks or answers.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from party.logs import json_log, places
from protocol.errors import CURATOR, FailedCheck, PeerError, SubnError


@contextmanager
def no_task_stops_the_party(step: str) -> Iterator[None]:
    """Raise FailedCheck in the place of an unforeseen error: a party that stops finds the task in its inbox again.

    Privacy: the curator is not told what went wrong, as that might depend on rows; the log says where it happened.
    """
    try:
        yield
    except SubnError:
        raise
    except Exception as error:  # whatever it is
        json_log("mistake", step=step, kind=type(error).__name__, at=places(error))
        raise FailedCheck(CURATOR, f"asks in {step!r} for what cannot be worked out") from error


def accused_by(error: SubnError) -> str:
    """The other party that an error blames, so that the curator does not take the refusal for this party's fault."""
    return error.culprit if isinstance(error, PeerError) and error.culprit != CURATOR else ""

"""Exit codes of `subn-party`, by the kind of error.

It does not know how errors are printed.
"""

from party.errors import Declined, LedgerError, PolicyRefusal, RolledBack, TalkError, Untrusted
from protocol.errors import OperatorError, SubnError

DONE, FAILED, USAGE, REFUSED = 0, 1, 2, 3


def exit_code(error: Exception) -> int:
    """Return FAILED where trying again may help, and USAGE or REFUSED where somebody has to change something."""
    if isinstance(error, Declined | Untrusted | PolicyRefusal | RolledBack):
        return REFUSED
    if isinstance(error, OperatorError):
        return USAGE
    assert isinstance(error, TalkError | LedgerError | SubnError | OSError)
    return FAILED


def words(error: Exception) -> str:
    """Say what went wrong, in one sentence."""
    if isinstance(error, OSError):
        return f"{error.filename or 'a file'}: {error.strerror}"
    return f"the curator refuses: {error}" if isinstance(error, Declined) else str(error)

"""A process that works plans out, one after the other: `python -m curator.runs.plan_worker BYTES`.

It does not know who asks (`curator.runs.plan_workers`). A plan that takes too much time or memory costs this process,
and not the service.
"""

import os
import resource
import signal
import sys
from types import FrameType

from crypto.errors import CryptoError
from curator.runs.planning import Answer, Wanted
from protocol.errors import OperatorError, PlanError

_LOOK_SECONDS = 1.0  # between two looks whether the service is still there


def answer_to(question: bytes) -> Answer:
    try:
        return Answer(forecast=Wanted.model_validate_json(question).work_out().forecast)
    except (OperatorError, CryptoError) as error:
        return Answer(refusal=(type(error).__name__, str(error)))
    except MemoryError:
        return Answer(
            refusal=(PlanError.__name__, "this plan takes too much memory to work out: leave attributes or values out")
        )


def main() -> None:
    most_bytes = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (most_bytes, most_bytes))
    _end_with(os.getppid())
    for question in sys.stdin.buffer:
        sys.stdout.write(answer_to(question).model_dump_json() + "\n")
        sys.stdout.flush()


def _end_with(service: int) -> None:
    """End this process when the service is gone: then nobody is left to end a plan that takes too long."""

    def look(_signal: int, _frame: FrameType | None) -> None:
        if os.getppid() != service:
            os._exit(1)

    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, _LOOK_SECONDS, _LOOK_SECONDS)


if __name__ == "__main__":
    main()

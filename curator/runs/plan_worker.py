"""A process that works plans out, one after the other: `python -m curator.runs.plan_worker SECONDS BYTES`.

It does not know who asks (`curator.runs.plan_workers`). A plan that takes too much time or memory costs this process,
and not the service.
"""

import resource
import signal
import sys

from crypto.errors import CryptoError
from curator.runs.planning import Answer, Wanted, plan_forecast
from protocol.errors import OperatorError, PlanError

_GRACE = 5  # seconds beyond which this process ends even if nobody is left to end it


def answer_to(question: bytes) -> Answer:
    try:
        return Answer(forecast=plan_forecast(Wanted.model_validate_json(question).terms()))
    except (OperatorError, CryptoError) as error:
        return Answer(refusal=(type(error).__name__, str(error)))
    except MemoryError:
        return Answer(
            refusal=(PlanError.__name__, "this plan takes too much memory to work out: leave attributes or values out")
        )


def main() -> None:
    seconds, most_bytes = map(int, sys.argv[1:])
    resource.setrlimit(resource.RLIMIT_AS, (most_bytes, most_bytes))
    for question in sys.stdin.buffer:
        signal.alarm(seconds + _GRACE)
        sys.stdout.write(answer_to(question).model_dump_json() + "\n")
        sys.stdout.flush()
        signal.alarm(0)


if __name__ == "__main__":
    main()

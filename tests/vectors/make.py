"""Write the test vectors anew: `.venv/bin/python -m tests.vectors.make`, in the project's folder.

Needed after a deliberate change of the wire format, the noise samplers or the order of draws; review the difference.
Good messages come from `messages`, broken ones from `broken`, runs from `small_run`.
"""

import json
from pathlib import Path
from typing import Any

from protocol.messages.tasks import encode
from tests.vectors.broken import broken
from tests.vectors.messages import MESSAGES
from tests.vectors.small_run import RUNS, run_vector

HERE = Path(__file__).parent


def good_vectors() -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "fields": message.model_dump(mode="json"),
            "blob": message.blob.hex(),
            "bytes": encode(message).hex(),
        }
        for name, message in MESSAGES.items()
    ]


def broken_vectors() -> list[dict[str, Any]]:
    return [{"name": name, "bytes": data.hex(), "refusal": refusal} for name, data, refusal in sorted(broken())]


def main() -> None:
    _write("messages.json", good_vectors())
    _write("broken.json", broken_vectors())
    for name in RUNS:
        _write(file_of(name), run_vector(name))


def file_of(run: str) -> str:
    return f"run-{run.replace(' ', '-')}.json"


def _write(name: str, value: Any) -> None:
    text = json.dumps(value, indent=1, ensure_ascii=False)
    (HERE / name).write_text(text + "\n", encoding="utf-8")
    print(f"wrote {name}")


if __name__ == "__main__":
    main()

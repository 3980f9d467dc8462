"""The tokens in the home's files: one opens the local interface, the other reads the metrics and nothing else.

It does not know HTTP.
"""

import re
from pathlib import Path

from crypto.randomness import Stream
from party.errors import SettingsError
from party.files import write_file

TOKEN_FILE = "local-token"  # noqa: S105 - the name of the file
METRICS_TOKEN_FILE = "metrics-token"  # noqa: S105 - the name of the file
_TOKEN_BYTES = 32
_TOKEN = re.compile(rb"[0-9a-f]{%d}\n?" % (2 * _TOKEN_BYTES))


def token_of(folder: Path, name: str = TOKEN_FILE) -> str:
    """A token of this home; made when it is first needed, readable for its owner alone.

    Privacy: a file that holds anything else is refused, above all an empty one, which a caller without a token would
    match.
    """
    path = folder / name
    if not path.exists():
        write_file(path, Stream.system().take(_TOKEN_BYTES).hex() + "\n")
    content = path.read_bytes()
    if not _TOKEN.fullmatch(content):
        raise SettingsError(
            f"{path} does not hold the token that this program wrote: remove the file; the next `subn-party serve` "
            "writes a new one"
        )
    return content.decode("ascii").strip()

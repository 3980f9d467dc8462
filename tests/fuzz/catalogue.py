"""All decoders of outside bytes, by name.

It does not know how bytes are made (`tests.fuzz.mutation`, `tests.fuzz.guided`).
"""

from tests.fuzz import files, talk, wire
from tests.fuzz.target import Target

TARGETS: dict[str, Target] = {target.name: target for target in (*wire.TARGETS, *files.TARGETS, *talk.TARGETS)}

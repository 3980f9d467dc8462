"""Fuzzing at length: `python -m tests.fuzz [SECONDS [TARGET ...]]` gives every decoder an equal part of the time.

Decoders run under libFuzzer where atheris is installed, and with Hypothesis elsewhere. What fails is written to
build/fuzz/TARGET; mended, it becomes a case in tests/fuzz/corpus.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings

from tests.fuzz.catalogue import TARGETS
from tests.fuzz.mutation import TOKENS, changed
from tests.fuzz.target import CORPUS, Target

OUT = Path("build/fuzz")
SECONDS = 600
_LARGEST = 1 << 14  # bytes of an input
_SLOWEST = 10  # seconds for one input: more counts as a failure
_MEGABYTES = 2048


def main(arguments: list[str]) -> int:
    seconds = int(arguments[0]) if arguments else SECONDS
    names = arguments[1:] or list(TARGETS)
    workers = os.cpu_count() or 1
    each = max(1, seconds * workers // len(names))
    way = guided if find_spec("atheris") else tried
    print(f"{len(names)} decoders, {each} s each, {'libFuzzer' if way is guided else 'Hypothesis'}", flush=True)
    with ThreadPoolExecutor(workers) as pool:
        found = dict(zip(names, pool.map(lambda name: way(TARGETS[name], each), names), strict=True))
    failed = [name for name, failures in found.items() if failures]
    for name in failed:
        print(f"\n{name}: {found[name]}", flush=True)
    print(f"\n{len(failed)} of {len(names)} decoders failed{': see build/fuzz' if failed else ''}")
    return 1 if failed else 0


def guided(target: Target, seconds: int) -> str:
    """What libFuzzer found; empty if nothing."""
    folder = OUT / target.name
    for name in ("corpus", "seeds"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for data in target.seeds():
        (folder / "seeds" / sha256(data).hexdigest()[:16]).write_bytes(data)
    (folder / "words").write_text("".join(_words()))
    kept = CORPUS / target.name
    options = [
        f"-max_total_time={seconds}",
        f"-max_len={_LARGEST}",
        f"-timeout={_SLOWEST}",
        f"-rss_limit_mb={_MEGABYTES}",
        f"-artifact_prefix={folder}/",
        f"-dict={folder / 'words'}",
        "-print_final_stats=1",
        str(folder / "corpus"),
        str(folder / "seeds"),
        *([str(kept)] if kept.is_dir() else []),
    ]
    command = [sys.executable, "-m", "tests.fuzz.guided", target.name, *options]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=seconds + 900)
    runs = next((line.split()[-1] for line in done.stderr.splitlines() if "number_of_executed_units" in line), "?")
    print(f"{target.name:30} {runs:>10} inputs {'FAILED' if done.returncode else ''}", flush=True)
    return _end_of(done.stdout + done.stderr) if done.returncode else ""


def _words() -> Iterator[str]:
    """The dictionary of marks and numbers, as libFuzzer reads it."""
    for token in TOKENS:
        if 0 < len(token) <= 64:
            yield '"' + "".join(f"\\x{byte:02x}" for byte in token) + '"\n'


def _end_of(text: str) -> str:
    """The uncaught exception in libFuzzer's output."""
    start = text.rfind("Uncaught Python exception")
    return text[start : start + 6000] if start >= 0 else text[-3000:]


def tried(target: Target, seconds: int) -> str:
    """What changes of the seeds found, without guidance; empty if nothing."""
    end = time.monotonic() + seconds
    phases = (Phase.generate, Phase.shrink)

    @settings(max_examples=500, deadline=None, database=None, phases=phases, suppress_health_check=list(HealthCheck))
    @given(changed([*target.seeds(), *target.kept()]))
    def explore(data: bytes) -> None:
        target.feed(data)

    try:
        while time.monotonic() < end:
            explore()
    except Exception as error:  # whatever it is, it is a find
        return f"{type(error).__name__}: {error} {getattr(error, '__notes__', '')}"
    return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

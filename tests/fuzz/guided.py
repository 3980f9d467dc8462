"""One decoder under libFuzzer, guided by which of the project's lines the bytes reach (atheris).

`python -m tests.fuzz.guided TARGET [libFuzzer's options and folders]`. It ends at the first bytes that make the decoder
fail in another way than by a refusal, and keeps them.
"""

import sys
import warnings

import atheris


def main(name: str, options: list[str]) -> None:
    with warnings.catch_warnings(), atheris.instrument_imports(include=["crypto", "protocol", "party", "curator"]):
        warnings.simplefilter("ignore")
        from tests.fuzz.catalogue import TARGETS
    target = TARGETS[name]
    for seed in target.seeds():  # what a process makes once is made before anything is timed
        target.feed(seed)
    atheris.Setup([sys.argv[0], *options], target.feed)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])

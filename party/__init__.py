"""A party node: the shell around the protocol at the place where rows live. It does not know the curator's code."""

from pathlib import Path as _Path

# The first words of packages whose names other distributions bear too. These packages are not imported to look.
_OWN = {"crypto": b'"""Cryptography over integers and bytes', "protocol": b'"""The protocol: computations, messages'}
_HERE = _Path(__file__).parents[1]

for _name, _words in _OWN.items():
    _file = _HERE / _name / "__init__.py"
    if not _file.is_file() or not _file.read_bytes().startswith(_words):
        raise SystemExit(
            f"dp-subn: {_file} is absent or belongs to another program whose package is called {_name!r} too. Install "
            "dp-subn anew, in an environment of its own (`pipx install`, `uv tool install`, or a virtual environment)"
        )

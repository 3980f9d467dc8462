"""The notebook client's files: a key or a CA that cannot be one is named before anybody is asked."""

from pathlib import Path

import pytest

from curator.operator.notebook import Curator
from protocol.errors import OperatorError

NOBODY = "https://127.0.0.1:9"


@pytest.fixture
def key(tmp_path: Path) -> Path:
    (tmp_path / "key").write_text("0" * 64)
    return tmp_path / "key"


@pytest.mark.parametrize("content", [b"", b"-----BEGIN CERTIFICATE-----\nMIIB", b"\xff"])
def test_a_file_that_holds_no_ca_is_named(key: Path, tmp_path: Path, content: bytes) -> None:
    """An empty file meant that the machine's own CAs are trusted."""
    ca = tmp_path / "cut.pem"
    ca.write_bytes(content)
    with pytest.raises(OperatorError, match=r"cut\.pem holds no certificate: the curator's tls/ca\.pem is expected"):
        Curator(NOBODY, key, ca)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", "ä".encode() * 32, b"two\nlines"])
def test_a_file_that_holds_no_key_is_named(key: Path, content: bytes) -> None:
    key.write_bytes(content)
    with pytest.raises(OperatorError, match="key holds no operator key: one line of letters and digits is expected"):
        Curator(NOBODY, key)

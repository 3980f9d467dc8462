"""A real PostgreSQL server for tests, from the programs in the package `pgserver`.

PostgreSQL refuses to run as root. `pgserver.get_server` then makes a user of the machine and opens folders up to the
root to it; here the programs run as `nobody` instead, in a folder that belongs to it, and nothing else is changed.
The server listens on a socket in that folder only, is a child of this process and has ended when the block is left.
"""

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from signal import SIGINT

import psycopg

_LONGEST_START = 30  # seconds
_PACKAGE = Path(str(find_spec("pgserver").origin)).parent


@contextmanager
def postgres_server() -> Iterator[str]:
    """The URL of a fresh database."""
    # Not below pytest's folders, which are closed to other users.
    folder = Path(tempfile.mkdtemp(prefix="subn-postgres-", dir="/tmp"))
    try:
        user, package = None, _PACKAGE
        if os.geteuid() == 0:
            user, package = "nobody", _copied(folder)
            account = pwd.getpwnam(user)
            os.chown(folder, account.pw_uid, account.pw_gid)
        programs = package / "pginstall" / "bin"
        data = folder / "data"
        initdb = [programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "utf8", "--locale=C", "-N"]
        subprocess.run(initdb, cwd=folder, user=user, check=True, stdout=subprocess.DEVNULL)
        arguments = ["-D", data, "-k", folder, "-h", "", "-c", "shared_buffers=16MB", "-c", "max_connections=20"]
        with (folder / "log").open("wb") as log:
            server = subprocess.Popen(
                [programs / "postgres", *arguments], cwd=folder, user=user, stdout=log, stderr=log
            )
        try:
            _wait_for(folder, server)
            yield f"postgresql://postgres@/postgres?host={folder}"
        finally:
            server.send_signal(SIGINT)  # a quick but orderly end
            server.wait(_LONGEST_START)
    finally:
        shutil.rmtree(folder)


def _copied(folder: Path) -> Path:
    """The programs in a folder of their own: that of the project may be closed to other users."""
    for part in ("pgserver/pginstall/bin", "pgserver/pginstall/lib", "pgserver/pginstall/share", "pgserver.libs"):
        shutil.copytree(_PACKAGE.parent / part, folder / part, symlinks=True)
    return folder / "pgserver"


def _wait_for(folder: Path, server: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + _LONGEST_START
    while True:
        try:
            psycopg.connect(f"postgresql://postgres@/postgres?host={folder}").close()
            return
        except psycopg.OperationalError:
            if server.poll() is not None or time.monotonic() > deadline:
                raise AssertionError((folder / "log").read_text()) from None
            time.sleep(0.05)

import os
import subprocess
import sys

import pytest

from party.errors import HomeInUse, LedgerError
from party.home.lock import served_alone

HOLD = """
import sys, time
from pathlib import Path
from party.home.lock import served_alone
with served_alone(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_process_is_told_which_one_serves_the_home(tmp_path):
    path = tmp_path / "lock"
    with subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(HomeInUse, match=f"process {holder.pid} serves this home already"), served_alone(path):
            pass
        holder.kill()
    with served_alone(path):  # the lock of a dead process is nobody's
        assert path.read_text() == f"{os.getpid()}\n"


def test_the_lock_holds_within_one_process_and_ends_with_its_block(tmp_path):
    path = tmp_path / "lock"
    for _ in range(2):
        with served_alone(path), pytest.raises(HomeInUse, match=f"process {os.getpid()} "), served_alone(path):
            pass


def test_a_holder_that_has_not_signed_yet_is_another_process(tmp_path):
    path = tmp_path / "lock"
    with served_alone(path):
        path.write_bytes(b"")
        with pytest.raises(HomeInUse, match="another process serves"), served_alone(path):
            pass


def test_a_home_that_is_absent_is_said_to_be_so(tmp_path):
    with pytest.raises(LedgerError, match="cannot be opened: No such file"), served_alone(tmp_path / "no" / "lock"):
        pass

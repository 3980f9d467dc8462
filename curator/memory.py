"""How the C library keeps memory: few arenas for many threads, and what is free goes back to the system.

It does not know what the memory holds. Where the library is not glibc, nothing happens.
"""

import ctypes
import sys
from contextlib import suppress

_M_ARENA_MAX = -8  # of mallopt, in malloc.h
_ARENAS = 2  # every thread would get its own, and keep the most that it ever held: answers arrive in forty threads


def share_arenas() -> None:
    """Let the threads of this process share two arenas. Call it before they begin."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS)


def give_back() -> None:
    """Give free memory back to the system, after work that has taken much of it."""
    with suppress(AttributeError):  # while another thread imports it
        if (arrow := sys.modules.get("pyarrow")) is not None:  # it has an allocator of its own
            arrow.default_memory_pool().release_unused()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)

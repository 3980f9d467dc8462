"""Run a program in namespaces of its own, with one leg to the tests' wire: `python -m tests.networks.inside ...`.

    inside FD ADDRESS RESOLV PROGRAM ARGUMENTS...

It is started by `unshare -n -m`. It makes a TUN device, hands it over through the socket FD, and becomes the program.
"""

import fcntl
import os
import socket
import struct
import subprocess
import sys

_TUNSETIFF, _TUN, _NO_HEADER = 0x400454CA, 0x0001, 0x1000
_DEVICE = "leg"


def leg(address: str) -> int:
    """A device with this address; every packet that the namespace sends comes out of the descriptor."""
    device = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", _DEVICE.encode(), _TUN | _NO_HEADER))
    for words in (f"addr add {address}/24 dev {_DEVICE}", f"link set {_DEVICE} up mtu 1400", "link set lo up"):
        subprocess.run(["ip", *words.split()], check=True)
    return device


def names_from(resolv: str) -> None:
    """Let this mount namespace resolve names as the file says."""
    subprocess.run(["mount", "--bind", resolv, "/etc/resolv.conf"], check=True)


def main() -> None:
    descriptor, address, resolv, *command = sys.argv[1:]
    names_from(resolv)
    with socket.socket(fileno=int(descriptor)) as line:
        socket.send_fds(line, [address.encode()], [leg(address)])
        line.recv(1)  # the other end has it
    os.execv(command[0], command)


if __name__ == "__main__":
    main()

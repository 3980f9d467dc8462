"""A name server that knows one name, and can fall silent or fail.

It does not know who asks.
"""

import socket
import struct
from threading import Thread

NAME = "curator.example"
_ADDRESS, _ANSWER, _FAILED = 1, 0x8180, 0x8182


class NameServer:
    def __init__(self, here: str, address: str) -> None:
        self.mood = "answers"  # or "silent", or "fails"
        self.asked = 0
        self._address = socket.inet_aton(address)
        self._line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._line.bind((here, 53))
        Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._line.close()

    def _serve(self) -> None:
        while True:
            try:
                question, sender = self._line.recvfrom(512)
            except OSError:  # closed
                return
            self.asked += 1
            if self.mood != "silent":
                self._line.sendto(self._answer(question), sender)

    def _answer(self, packet: bytes) -> bytes:
        end = packet.index(b"\0", 12) + 5
        kind, question = struct.unpack(">H", packet[end - 4 : end - 2])[0], packet[12:end]
        if self.mood == "fails":
            return packet[:2] + struct.pack(">5H", _FAILED, 1, 0, 0, 0) + question
        found = kind == _ADDRESS
        answer = struct.pack(">HHHIH", 0xC00C, _ADDRESS, 1, 1, 4) + self._address if found else b""
        return packet[:2] + struct.pack(">5H", _ANSWER, 1, int(found), 0, 0) + question + answer

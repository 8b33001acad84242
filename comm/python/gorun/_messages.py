"""Messages between two ranks."""

from ctypes import byref, c_int
from typing import Any, Optional

from ._buffers import Place, place
from ._calls import Calls
from ._types import Status
from ._work import Received, Work, received

ANY_SOURCE = -1
ANY_TAG = -1


class Messages(Calls):
    def _message(self, op: str, buffer: Any, writable: bool) -> Place:
        return place(op, "the buffer", buffer, writable)

    def send(self, buffer: Any, rank: int, tag: int = 0) -> None:
        """Sends the buffer to a rank."""
        at = self._message("send", buffer, False)
        self._do(at.owner, "send", at.address, at.count, at.type, rank, tag)

    def isend(self, buffer: Any, rank: int, tag: int = 0) -> Work:
        at = self._message("send", buffer, False)
        return self._start(at.owner, "send", at.address, at.count, at.type, rank, tag)

    def recv(self, buffer: Any, rank: int = ANY_SOURCE, tag: int = 0) -> Received:
        """Receives a message, which may be shorter than the buffer."""
        at, status = self._message("recv", buffer, True), Status()
        self._do(at.owner, "recv", at.address, at.count, at.type, rank, tag, byref(status))
        return received(status)

    def irecv(self, buffer: Any, rank: int = ANY_SOURCE, tag: int = 0) -> Work:
        at = self._message("recv", buffer, True)
        return self._start(at.owner, "recv", at.address, at.count, at.type, rank, tag)

    def sendrecv(self, buffer: Any, dst: int, out: Any, src: int = ANY_SOURCE, tag: int = 0) -> Received:
        """Sends the buffer to dst, and receives into out."""
        sent = self.isend(buffer, dst, tag)
        got = self.recv(out, src, tag)
        sent.wait()
        return got

    def probe(self, rank: int = ANY_SOURCE, tag: int = ANY_TAG) -> Received:
        """Waits for a message, and leaves it where it is."""
        status = Status()
        self._do(None, "probe", rank, tag, byref(status))
        return received(status)

    def iprobe(self, rank: int = ANY_SOURCE, tag: int = ANY_TAG) -> Optional[Received]:
        """Is probe without waiting: None if there is no message."""
        status, found = Status(), c_int()
        self._do(None, "iprobe", rank, tag, byref(found), byref(status))
        return received(status) if found.value else None

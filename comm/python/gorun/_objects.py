"""Objects: as CBOR, or as pickle where both sides ask for it."""

import ctypes
import pickle
from typing import Any, List, Optional, Sequence

from . import _cbor
from ._collectives import Collectives
from ._errors import ArgumentError
from ._lists import Lists
from ._messages import ANY_SOURCE, ANY_TAG, Messages

_PICKLE = b"\x80"  # with which every pickle begins, and no other object in CBOR than an empty list, which is this byte alone


def _encode(value: Any, codec: str) -> bytes:
    if codec == "cbor":
        return _cbor.encode(value)
    if codec != "pickle":
        raise ArgumentError("gorun: codec %r: want cbor or pickle" % (codec,))
    try:
        return pickle.dumps(value, 4)
    except Exception as e:
        raise ArgumentError("gorun: an object cannot be pickled: %s" % e) from e


def _decode(data: bytearray, codec: str) -> Any:
    pickled = data[:1] == _PICKLE and len(data) > 1
    if pickled != (codec == "pickle"):
        sent, want = ("pickle", "cbor") if pickled else ("cbor", "pickle")
        raise ArgumentError("gorun: an object has been sent with codec %s, and received with codec %s" % (sent, want))
    if codec == "cbor":
        return _cbor.decode(data)
    try:
        return pickle.loads(data)
    except Exception as e:
        raise ArgumentError("gorun: an object cannot be unpickled: %s" % e) from e


class Objects(Collectives, Lists, Messages):
    """Objects are None, bool, int, float, str, bytes, lists, tuples (as lists) and dicts of them, which travel as CBOR.

    With codec="pickle" they are what pickle can carry. It runs what a sender wants, so use it only among ranks that you trust.
    """

    def all_gather_object(self, value: Any, codec: str = "cbor") -> List[Any]:
        """Returns the objects of all ranks."""
        mine = _encode(value, codec)
        sizes = (ctypes.c_int64 * self.size)()
        self.all_gather((ctypes.c_int64 * 1)(len(mine)), sizes)
        all_of = [bytearray(n) for n in sizes]
        self.all_gatherv(mine, all_of)
        return [_decode(b, codec) for b in all_of]

    def gather_object(self, value: Any, root: int = 0, codec: str = "cbor") -> Optional[List[Any]]:
        """Returns the objects of all ranks at root, and None elsewhere."""
        mine = _encode(value, codec)
        sizes = (ctypes.c_int64 * self.size)()
        self.all_gather((ctypes.c_int64 * 1)(len(mine)), sizes)
        all_of = [bytearray(n) for n in sizes] if self.rank == root else None
        self.gatherv(mine, all_of, root)
        return None if all_of is None else [_decode(b, codec) for b in all_of]

    def broadcast_object(self, value: Any = None, root: int = 0, codec: str = "cbor") -> Any:
        """Returns root's object."""
        mine = _encode(value, codec) if self.rank == root else b""
        size = (ctypes.c_int64 * 1)(len(mine))
        self.broadcast(size, root)
        data = bytearray(mine) if self.rank == root else bytearray(size[0])
        self.broadcast(data, root)
        return value if self.rank == root else _decode(data, codec)

    def scatter_object(self, values: Optional[Sequence[Any]] = None, root: int = 0, codec: str = "cbor") -> Any:
        """Returns this rank's object of root's list."""
        mine = [_encode(v, codec) for v in values or []] if self.rank == root else None
        if mine is not None and len(mine) != self.size:
            raise ArgumentError("gorun: scatter_object: %d objects: want one for each of %d ranks" % (len(mine), self.size))
        size = (ctypes.c_int64 * 1)()
        self.scatter((ctypes.c_int64 * self.size)(*map(len, mine)) if mine is not None else None, size, root)
        data = bytearray(size[0])
        self.scatterv(mine, data, root)
        return _decode(data, codec)

    def send_object(self, value: Any, rank: int, tag: int = 0, codec: str = "cbor") -> None:
        """Sends an object."""
        self.send(_encode(value, codec), rank, tag)

    def recv_object(self, rank: int = ANY_SOURCE, tag: int = 0, codec: str = "cbor") -> Any:
        """Receives an object."""
        at = self.probe(rank, tag)
        data = bytearray(at.count)
        self.recv(data, at.source, at.tag)
        return _decode(data, codec)

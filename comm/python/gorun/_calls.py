"""How a group makes its calls."""

from ctypes import byref, c_uint64
from typing import Any

from ._library import library
from ._work import Work, sweep


class Calls:
    """What all calls of a group have in common. args are those of C behind the group."""

    _handle: int
    rank: int
    size: int

    def _do(self, keeps: Any, name: str, *args: Any) -> None:
        getattr(library(), name)(self._handle, *args)

    def _start(self, keeps: Any, name: str, *args: Any) -> Work:
        sweep()
        handle = c_uint64()
        getattr(library(), "i" + name)(self._handle, *args, byref(handle))
        return Work(handle.value, keeps)

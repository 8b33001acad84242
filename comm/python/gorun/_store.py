"""The store in which ranks can leave each other small values."""

import ctypes
from ctypes import byref, c_char_p, c_int, c_int64, c_size_t, c_uint64
from typing import Any, Optional, Sequence

from ._errors import ArgumentError
from ._library import library
from ._types import text


class Store:
    """Small values by name. Timeouts are in seconds; 0 is no limit.

    >>> store = gorun.Store.file("/shared/job-7")
    >>> store.set("epoch", b"3")
    >>> world = gorun.init(store=store, rank=0, size=4)
    """

    def __init__(self, handle: int) -> None:
        self._handle = handle

    @classmethod
    def _opened(cls, name: str, *args: Any) -> "Store":
        library().watch_signals()
        handle = c_uint64()
        getattr(library(), name)(*args, byref(handle))
        return cls(handle.value)

    @classmethod
    def tcp(cls, address: str, token: Optional[str] = None, timeout: float = 0) -> "Store":
        """Connects to the store of another process, at host:port."""
        return cls._opened("store_tcp", text("address", address), None if token is None else text("token", token), timeout)

    @classmethod
    def file(cls, path: str) -> "Store":
        """Opens, or makes, a store in a directory that all ranks can reach."""
        return cls._opened("store_file", text("path", path))

    def set(self, key: str, value: bytes) -> None:
        """Sets a value, which replaces the one before."""
        library().store_set(self._handle, text("key", key), value, len(value))

    def get(self, key: str, timeout: float = 0) -> bytes:
        """Waits until there is a value, and returns it."""
        length, room = c_size_t(), 1 << 12
        while True:
            value = ctypes.create_string_buffer(room)
            library().store_get(self._handle, text("key", key), timeout, value, room, byref(length))
            if length.value <= room:
                return value.raw[: length.value]
            room = length.value

    def add(self, key: str, amount: int) -> int:
        """Adds to a number, which is 0 at first, and returns the sum."""
        total = c_int64()
        library().store_add(self._handle, text("key", key), amount, byref(total))
        return total.value

    def wait(self, keys: Sequence[str], timeout: float = 0) -> None:
        """Waits until all keys have values."""
        if isinstance(keys, str):
            raise ArgumentError("gorun: the keys are %r: want a list" % (keys,))
        library().store_wait(self._handle, (c_char_p * len(keys))(*(text("key", k) for k in keys)), len(keys), timeout)

    def delete(self, key: str) -> bool:
        """Deletes a value, and reports whether there was one."""
        was_set = c_int()
        library().store_delete(self._handle, text("key", key), byref(was_set))
        return bool(was_set.value)

    def close(self) -> None:
        """Ends the store's connection. What others have set stays."""
        library().store_close(self._handle)

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

"""Operations under way."""

import collections
import ctypes
import threading
from ctypes import byref, c_int
from typing import Any, Deque, Dict, NamedTuple, Optional

from ._errors import ArgumentError, Error
from ._library import library
from ._types import Status


class Received(NamedTuple):
    """What a receive has received: the sender's rank in the group, the tag, and how many elements."""

    source: int
    tag: int
    count: int


def received(status: Status) -> Received:
    return Received(status.source, status.tag, status.count)


# What operations under way use, by the handle of their work: a program may drop a Work, or end. So this lives for ever.
_kept: Dict[int, Any] = {}
ctypes.pythonapi.Py_IncRef(ctypes.py_object(_kept))
_dropped: Deque[int] = collections.deque()


_SWEPT = 4  # so many at a time, as thousands may be under way


def sweep() -> None:
    """Ends some of the work that the program has dropped and that is done."""
    for _ in range(min(len(_dropped), _SWEPT)):
        try:
            handle, done = _dropped.popleft(), c_int(1)
        except IndexError:
            return  # another thread has it
        try:
            library().wait_for(handle, 0, byref(done), None)
        except ArgumentError:
            done.value = 1  # the call was wrong, or its work has ended
        except Error:
            pass  # nobody has asked
        if done.value:
            _kept.pop(handle, None)
        else:
            _dropped.append(handle)


class Work:
    """An operation under way. Its buffers are kept until it has ended."""

    def __init__(self, handle: int, keeps: Any) -> None:
        self._handle = handle
        if handle:
            _kept[handle] = keeps
        self._status: Optional[Received] = None
        self._error: Optional[BaseException] = None
        self._lock = threading.Lock()  # of the thread that waits

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Waits until the operation has ended, and raises its error.

        With a timeout in seconds, it returns False after that; the operation and the group go on.
        """
        if self._handle:
            if not self._lock.acquire(False):
                if not self._lock.acquire(timeout=-1 if timeout is None else min(max(timeout, 0), threading.TIMEOUT_MAX)):
                    return False
            try:
                if self._handle and not self._wait(timeout):
                    return False
            finally:
                self._lock.release()
        if self._error is not None:
            raise self._error
        return True

    def _wait(self, timeout: Optional[float]) -> bool:
        status, done = Status(), c_int(1)
        try:
            if timeout is None:
                library().wait(self._handle, byref(status))
            else:
                library().wait_for(self._handle, timeout, byref(done), byref(status))
        except BaseException as e:
            if timeout is not None and not done.value:
                raise  # only the wait has ended
            self._end(None, e)
            return True
        if done.value:
            self._end(received(status), None)
        return bool(done.value)

    def is_completed(self) -> bool:
        """Reports whether the operation has ended, without waiting."""
        return self._handle == 0 or self.wait(0)

    def status(self) -> Received:
        """Returns what a receive has received, once it has ended."""
        self.wait()
        assert self._status is not None
        return self._status

    def _end(self, status: Optional[Received], error: Optional[BaseException]) -> None:
        _kept.pop(self._handle, None)
        self._status, self._error = status, error
        self._handle = 0  # last, as other threads look at it

    def __del__(self, dropped: Deque[int] = _dropped) -> None:
        if self._handle:
            dropped.append(self._handle)

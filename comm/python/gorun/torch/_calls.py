"""How calls are made: at once, as one call of C, or started; and messages."""

import time
from ctypes import byref, c_uint64
from typing import Any, List, Optional, Sequence, Tuple

from .._library import library
from ._meet import Member
from ._tensors import Copies, Place, one, place
from ._work import DONE, Listener, Work, alive, called_by_torch, message_waits, waits

Call = Tuple[Any, ...]  # a function of the library, and its arguments after the group


class Calls:
    """What collectives and messages of a group need. Options say whether the caller waits."""

    _in_python = False  # if torch's functions call the group itself, and so have its Work as it is. Else C++ has that, with its half in Python

    def __init__(self, member: Member, listener: Listener, rank: int, size: int) -> None:
        self._member, self._listener, self._rank, self._size = member, listener, rank, size
        self._handle, self._limit, self._seq = member.group._handle, member.limit, 0
        self._started: Optional[List[Work]] = None  # since _start_coalescing

    def _do(self, options: Any, calls: List[Call], result: Sequence[Any], keeps: Any = None, copies: Optional[Copies] = None) -> Work:
        self._seq += 1
        if self._limit < 0 and waits(options):
            for name, *args in calls:
                getattr(library(), name)(self._handle, *args)
            if copies:
                copies.run()
            return DONE
        return self._start(calls, result, keeps, copies, waits(options))

    def _start(
        self, calls: List[Call], result: Sequence[Any], keeps: Any, copies: Optional[Copies], wait: bool, message: bool = False
    ) -> Work:
        handles = []
        for name, *args in calls:
            handle = c_uint64()
            getattr(library(), "i" + name)(self._handle, *args, byref(handle))
            handles.append(handle.value)
        listen = self._listener.message if message else self._listener.collective
        work = Work(calls[0][0] if calls else "", handles, result, (result, keeps), copies or Copies(), listen, self._limit, self._abort)
        work.dropped = not self._in_python or called_by_torch()
        if self._started is not None:
            self._started.append(work)
        if wait:
            work.wait()
        return work

    def _abort(self, why: str) -> None:
        """Ends the group, as a call has taken longer than one may: so does gloo."""
        self._member.group.abort(why)

    def send(self, tensors: Any, dst: int, tag: int = 0) -> Work:
        t = one("send", tensors)
        p = place("send", t)
        return self._message("send", (p.address, p.count, p.type, dst, tag), [], p)

    def recv(self, tensors: Any, src: int, tag: int = 0) -> Work:
        t, copies = one("recv", tensors), Copies()
        p = place("recv", t, copies)
        return self._message("recv", (p.address, p.count, p.type, src, tag), [t], p, copies)

    def recv_anysource(self, tensors: Any, tag: int = 0) -> Work:
        t, copies = one("recv", tensors), Copies()
        p = place("recv", t, copies)
        return self._start([("recv", p.address, p.count, p.type, -1, tag)], [t], p, copies, False, message=True)

    def _message(self, name: str, args: Call, result: List[Any], p: Place, copies: Optional[Copies] = None) -> Work:
        wait = message_waits()
        if not wait or self._limit >= 0:
            return self._start([(name,) + args], result, p, copies, wait, message=True)
        getattr(library(), name)(self._handle, *args, *(() if copies is None else (None,)))
        if copies:
            copies.run()
        return DONE

    def _start_coalescing(self, *_: Any) -> None:
        self._started = []

    def _end_coalescing(self, *_: Any) -> Work:
        started, self._started = self._started or [], None
        return Together(started)


class Together(Work):
    """Several works as one. A program may also have and wait for each of them."""

    def __init__(self, works: List[Work]) -> None:
        first = works[0] if works else DONE
        super().__init__(first._op, [], [t for w in works for t in w._result], None, Copies(), first._listen, first._limit, first._abort)
        self._works, self.dropped = works, all(work.dropped for work in works)

    def _pending(self) -> bool:
        return any(work._pending() for work in self._works)

    def _settled(self, limit: float) -> bool:
        deadline = time.monotonic() + limit
        for work in self._works:
            if not work._settled(limit if limit < 0 else max(deadline - time.monotonic(), 0)):
                return False
            self._error = self._error or work._error
            alive.pop(id(work), None)
        return True

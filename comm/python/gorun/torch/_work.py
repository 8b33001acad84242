"""Operations under way, as torch wants them, and the threads that wait for them."""

import datetime
import inspect
import queue
import sys
import threading
from ctypes import byref, c_int
from typing import Any, Callable, Dict, List, Optional, Sequence

import torch
import torch.distributed as dist

from .._errors import Error
from .._library import library
from .._types import Status
from ._tensors import Copies

Base: Any = getattr(dist, "Work", None) or torch._C._distributed_c10d.Work


class TimedOut(Error):
    """A call has not ended in time."""


# Work that torch may have in C++ only, where the half in Python would be gone.
alive: Dict[int, "Work"] = {}
_many = 64


def _sweep() -> None:
    """Lets go of what works hold that have ended, and that nobody waits for."""
    global _many
    for key, work in list(alive.items()):
        if work is not DONE and work.is_completed() and work.dropped:
            alive.pop(key, None)
    _many = 2 * len(alive) + 64


class Work(Base):  # type: ignore[misc]
    """An operation under way, or several."""

    def __init__(
        self, op: str, handles: List[int], result: Sequence[Any], keeps: Any, copies: Copies, listen: Callable[["Work"], None],
        limit: float = -1.0, abort: Callable[[str], None] = lambda _: None,
    ) -> None:  # fmt: skip
        super().__init__()
        self._op, self._limit, self._abort = op, limit, abort
        self.dropped = False  # if nothing in Python has it: nothing in C++ has
        self._handles, self._result, self._keeps, self._copies, self._listen = handles, result, keeps, copies, listen
        self._lock = threading.Lock()  # of the thread that waits
        self._error: Optional[BaseException] = None
        self._source = -1
        self._future: Any = None
        if len(alive) >= _many:
            _sweep()
        alive[id(self)] = self

    def wait(self, timeout: Any = None) -> bool:
        """Waits until the operation has ended, and raises its error. One that has not ended in time is an error, too."""
        limit = -1.0 if not timeout else timeout.total_seconds() if isinstance(timeout, datetime.timedelta) else timeout / 1e3
        if limit <= 0:
            self.settle()
        elif not self._settled(limit):
            raise TimedOut("gorun: %s: Timed out waiting %gs: the operation goes on" % (self._op, limit))
        alive.pop(id(self), None)
        if self._error is not None:
            raise self._error
        return True

    def _pending(self) -> bool:
        return bool(self._handles)

    def _settled(self, limit: float) -> bool:
        """Waits so long, or for ever, and reports whether the operation has ended."""
        if not self._handles:
            return True
        if not self._lock.acquire(timeout=limit):
            return False
        try:
            while self._handles:
                if not self._end_one(limit):
                    return False
        finally:
            self._lock.release()
        return True

    def _end_one(self, limit: float) -> bool:
        status, done = Status(), c_int(1)
        try:
            if limit < 0:
                library().wait(self._handles[0], byref(status))
            else:
                library().wait_for(self._handles[0], limit, byref(done), byref(status))
        except BaseException as e:
            if limit >= 0 and not done.value:
                raise  # only the wait has ended
            self._error = self._error or e
        if not done.value:
            return False
        if len(self._handles) == 1:
            self._source = status.source
            if self._error is None:
                self._copies.run()
            self._keeps = None
        self._handles.pop(0)
        return True

    def is_completed(self) -> bool:
        return self._settled(0)

    def is_success(self) -> bool:
        return self._settled(0) and self._error is None

    def exception(self) -> Optional[BaseException]:
        return self._error if self._settled(0) else None

    def synchronize(self) -> None:
        self.wait()

    def result(self) -> List[Any]:
        self.wait()
        return list(self._result)

    def source_rank(self) -> int:
        self.wait()
        return self._source

    _source_rank = source_rank

    def get_future(self) -> Any:
        """Returns a future that has the tensors. An error is raised within then: only so does C++ see it as one."""
        if self._future is None:
            self._ended: Any = torch.futures.Future()
            self._future = self._ended.then(self._outcome)
            if self._pending():
                self._listen(self)
            else:
                self.deliver()
        return self._future

    getFuture = get_future  # as C++ calls it

    def _outcome(self, _: Any) -> List[Any]:
        if self._error is not None:
            raise self._error
        return list(self._result)

    def settle(self) -> None:
        """Waits until the operation has ended. One that takes longer than the group has ends the group."""
        if not self._settled(self._limit):
            why = TimedOut("gorun: %s: Timed out waiting %gs" % (self._op, self._limit))
            self._abort(str(why))
            self._settled(-1)
            self._error = why

    def deliver(self) -> None:
        """Completes the future."""
        self.settle()
        self._ended.set_result(None)
        alive.pop(id(self), None)


class _Done(Work):
    """Work of all calls that have waited themselves. It lives for ever, so it is never one that torch has in C++ only."""

    def __init__(self) -> None:
        super().__init__("", [], [], None, Copies(), lambda _: None)

    def get_future(self) -> Any:
        raise Error("gorun: the call has waited, and has no future: call it with async_op=True")

    getFuture = get_future


DONE = _Done()


class Listener:
    """Threads that wait for the works of a group, and complete their futures: one, in their order.

    What waits for a future may make a call and wait for its future in turn, as the hook of PowerSGD does: then another thread goes on.
    Messages end in any order, so each that has a future has a thread of its own.
    """

    def __init__(self) -> None:
        self._queue: Any = queue.SimpleQueue()
        self._threads: List[threading.Thread] = []
        self._lock = threading.Lock()  # of the fields below
        self._runs: List[threading.Thread] = []  # threads that complete futures of collectives
        self._idle = 0  # how many of them are not in what waits for a future
        self._over = False

    def collective(self, work: Work) -> None:
        with self._lock:
            over = self._over
            if not over:
                self._queue.put(work)
                if not self._runs or self._idle == 0 and threading.current_thread() in self._runs:
                    self._idle += 1
                    self._runs.append(self._begin(self._run))
        if over:
            work.deliver()

    def message(self, work: Work) -> None:
        with self._lock:
            over = self._over
            if not over:
                self._begin(work.deliver)
        if over:
            work.deliver()

    def _begin(self, run: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=run, name="gorun", daemon=True)
        thread.start()
        self._threads = [t for t in self._threads if t.is_alive()] + [thread]
        return thread

    def _run(self) -> None:
        while True:
            work = self._queue.get()
            if work is None:
                self._queue.put(None)  # for the others
                return
            work.settle()
            with self._lock:
                self._idle -= 1
            work.deliver()
            del work  # which may be all that keeps the group
            with self._lock:
                self._idle += 1

    def end(self) -> None:
        """Ends the threads, once the group has been closed."""
        with self._lock:
            self._over = True
            threads = list(self._threads)
        self._queue.put(None)
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join()


_OPTIONS_SAY = hasattr(dist.AllreduceOptions, "asyncOp")  # torch 2.6 has it in some options, and does not set it
_messages = {"send": True, "recv": True, "isend": False, "irecv": False}
_callers: Dict[Any, Optional[bool]] = {}  # functions of torch, by their code: do they wait? None: async_op says so
for _name, _function in vars(dist.distributed_c10d).items():
    _code = getattr(inspect.unwrap(_function) if callable(_function) else None, "__code__", None)
    if _code is not None and (_name in _messages or "async_op" in _code.co_varnames):
        _callers[_code] = _messages.get(_name)


def waits(options: Any) -> bool:
    """Reports whether the caller of the method that calls this waits at once.

    torch 2.7 and newer say so, but not of messages. Else the function of torch that has called the method knows.
    """
    if _OPTIONS_SAY and options is not None:
        return not getattr(options, "asyncOp", True)
    frame = sys._getframe(2).f_back
    known = _callers.get(frame.f_code, False) if frame else False
    return not frame.f_locals["async_op"] if known is None else known


def called_by_torch() -> bool:
    """Reports whether one of torch's functions for programs has called this package, which calls this."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__package__") == __package__:
        frame = frame.f_back
    return frame is not None and frame.f_code in _callers


def message_waits() -> bool:
    """Is waits, of a message. send of torch 2 calls isend, with a wrapper between them."""
    frame, of_torch = sys._getframe(2).f_back, False
    for _ in range(3):
        if frame is None:
            return False
        known = _callers.get(frame.f_code)
        if known:
            return True
        if known is None and not of_torch:
            return False
        frame, of_torch = frame.f_back, True
    return False

"""The C library: its functions."""

import ctypes
import itertools
import os
import threading
from ctypes import CFUNCTYPE, POINTER, byref, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint64, c_void_p
from typing import Any, Callable, Dict, List, Optional

from ._errors import FUNCTION, INTERRUPTED, ArgumentError, Error, classes
from ._types import Buffer, Int, LastError, Long, OpenFunction, OpFunction, Options, Status, StoreFunctions

ABI = 1


# The arguments of functions behind the group. A started form has the place of its work behind them.
_IO = [c_void_p, c_void_p, c_size_t, c_int]  # in, out, count, type
_IN_LIST = [c_void_p, c_size_t, POINTER(Buffer), c_int]  # in, count, list, type
_LIST_OUT = [POINTER(Buffer), c_void_p, c_size_t, c_int]  # list, out, count, type
_started = {
    "barrier": [],
    "all_reduce": _IO + [c_int],
    "scan": _IO + [c_int],
    "exscan": _IO + [c_int],
    "reduce_scatter": _IO + [c_int],
    "reduce": _IO + [c_int, Int],
    "broadcast": [c_void_p, c_size_t, c_int, Int],
    "all_gather": _IO,
    "all_to_all": _IO,
    "gather": _IO + [Int],
    "scatter": _IO + [Int],
    "all_gatherv": _IN_LIST,
    "gatherv": _IN_LIST + [Int],
    "scatterv": _LIST_OUT + [Int],
    "reduce_scatterv": _LIST_OUT + [c_int],
    "all_to_allv": [c_void_p, POINTER(c_size_t), c_void_p, POINTER(c_size_t), c_int],
    "all_to_allw": [POINTER(Buffer), POINTER(Buffer), c_int],
    "all_reduce_coalesced": [POINTER(Buffer), c_int, c_int, c_int],
    "send": [c_void_p, c_size_t, c_int, Int, Int],
}
_others = {
    "init": [POINTER(Options), POINTER(c_uint64)],
    "init_round_store": [POINTER(Options), OpenFunction, c_void_p, POINTER(c_uint64)],
    "rejoin": [POINTER(c_uint64)],
    "op_create": [OpFunction, c_void_p, c_char_p, c_size_t, c_int, POINTER(c_int)],
    "op_free": [c_int],
    "close": [c_uint64],
    "abort": [c_uint64, c_char_p],
    "rank": [c_uint64, POINTER(c_int)],
    "size": [c_uint64, POINTER(c_int)],
    "world_ranks": [c_uint64, POINTER(c_int)],
    "comm_create": [c_uint64, POINTER(c_int), c_int, POINTER(c_uint64)],
    "comm_create_group": [c_uint64, POINTER(c_int), c_int, c_char_p, POINTER(c_uint64)],
    "comm_split": [c_uint64, Int, Int, POINTER(c_uint64)],
    "monitored_barrier": [c_uint64],
    "recv": [c_uint64, c_void_p, c_size_t, c_int, Int, Int, POINTER(Status)],
    "irecv": [c_uint64, c_void_p, c_size_t, c_int, Int, Int, POINTER(c_uint64)],
    "probe": [c_uint64, Int, Int, POINTER(Status)],
    "iprobe": [c_uint64, Int, Int, POINTER(c_int), POINTER(Status)],
    "wait": [c_uint64, POINTER(Status)],
    "wait_for": [c_uint64, c_double, POINTER(c_int), POINTER(Status)],
    "alloc": [c_uint64, c_size_t, POINTER(c_void_p)],
    "free": [c_void_p],
    "store_tcp": [c_char_p, c_char_p, c_double, POINTER(c_uint64)],
    "store_file": [c_char_p, POINTER(c_uint64)],
    "store_custom": [POINTER(StoreFunctions), POINTER(c_uint64)],
    "store_close": [c_uint64],
    "store_set": [c_uint64, c_char_p, c_char_p, c_size_t],
    "store_get": [c_uint64, c_char_p, c_double, c_char_p, c_size_t, POINTER(c_size_t)],
    "store_add": [c_uint64, c_char_p, Long, POINTER(c_int64)],
    "store_wait": [c_uint64, POINTER(c_char_p), c_int, c_double],
    "store_delete": [c_uint64, c_char_p, POINTER(c_int)],
    "state_create": [POINTER(c_char_p), c_int, POINTER(c_uint64)],
    "state_free": [c_uint64],
    "state_take": [c_uint64, c_char_p, c_void_p, c_int],
    "state_commit": [c_uint64],
    "state_wait": [c_uint64],
    "state_sync": [c_uint64, c_uint64, c_int, c_void_p, c_int],
    "state_entries": [c_uint64, c_char_p, c_void_p, c_int, POINTER(c_int)],
    "flight": [c_char_p, c_size_t, POINTER(c_size_t)],
    "explain": [c_uint64, c_char_p, c_size_t, c_char_p, c_size_t, POINTER(c_size_t)],
}


def _wrong(name: str, value: Any, why: str) -> ArgumentError:
    return ArgumentError("gorun: %s: %r: %s" % (name, value, why.rsplit(": ", 1)[-1].strip()))


class Library:
    """The functions of gorun.h, by their names without gorun_. Each raises an exception if it fails."""

    def __init__(self) -> None:
        path = os.environ.get("GORUN_LIBRARY") or os.path.join(os.path.dirname(__file__), "libgorun.so.%d" % ABI)
        try:
            self._c = ctypes.CDLL(path)
        except OSError as e:
            raise ImportError("gorun: cannot load the C library: %s (scripts/library builds it)" % e) from None
        abi = self._c.gorun_abi() if hasattr(self._c, "gorun_abi") else 0
        if abi != ABI:
            raise ImportError("gorun: %s is of another version: its ABI is %d, want %d" % (path, abi, ABI))
        self._raised: List[BaseException] = []  # by signal handlers
        self._thrown: Dict[int, BaseException] = {}  # by functions that C calls, by what it has got from them
        self._throws = itertools.count(1)
        self._poll: Any = None
        for name, arguments in _started.items():
            self._add(name, [c_uint64] + arguments)
            self._add("i" + name, [c_uint64] + arguments + [POINTER(c_uint64)])
        for name, arguments in _others.items():
            self._add(name, arguments)

    def _add(self, name: str, arguments: List[Any]) -> None:
        function = getattr(self._c, "gorun_" + name)
        function.argtypes = arguments

        def call(*args: Any) -> None:
            try:
                code = function(*args)
            except ctypes.ArgumentError as e:  # "argument N: why"
                number, why = str(e).split(":", 1)
                raise _wrong(name, args[int(number.split()[-1]) - 1], why) from None
            if code:
                self._fail(code)

        setattr(self, name, call)

    def bind(self, keeps: Any, name: str, *args: Any) -> Callable[[], None]:
        """Returns a function that makes this call. It has the arguments as C takes them, and keeps the buffers."""
        getattr(self, name)  # a name that there is
        types = getattr(self._c, "gorun_" + name).argtypes
        function = self._c["gorun_" + name]  # another object, which converts nothing
        made = []
        for kind, value in zip(types, args):
            try:
                made.append(kind.from_param(value))
            except (TypeError, ArgumentError) as e:
                raise _wrong(name, value, str(e)) from None

        def call(kept: Any = keeps, made: Any = tuple(made)) -> None:
            code = function(*made)
            if code:
                self._fail(code)

        return call

    def unchecked(self, name: str) -> Any:
        """Returns a function that raises nothing if it fails."""
        return getattr(self._c, "gorun_" + name)

    def safe(self, function: Callable[..., None]) -> Callable[..., int]:
        """Returns function for C, which cannot raise what it raises: the call that fails because of it does."""

        def call(*args: Any) -> int:
            try:
                function(*args)
            except BaseException as e:
                number = next(self._throws)
                self._thrown[number] = e
                return number
            return 0

        return call

    def _fail(self, code: int) -> None:
        if code == INTERRUPTED and self._raised:
            raise self._raised.pop()
        last = LastError()
        self._c.gorun_last_error(byref(last))
        error = classes.get(code, Error)(last.text.decode(errors="replace"))
        error.op, error.seq = last.op.decode(), last.seq
        if code == FUNCTION and last.exit_code in self._thrown:
            raise self._thrown.pop(last.exit_code)
        if last.rank >= 0:
            error.rank = last.rank
        if last.has_died and last.signal:
            error.signal = last.signal
        elif last.has_died:
            error.exit_code = last.exit_code
        raise error

    def watch_signals(self) -> None:
        """Makes calls of this thread that wait for long run Python's signal handlers.

        Python runs them when a frame is resumed. A generator is resumed within its try, which keeps what they raise. It
        runs none in other threads.
        """
        if self._poll is not None or threading.current_thread() is not threading.main_thread():
            return

        def signals() -> Any:
            stop = 0
            while True:
                try:
                    yield stop
                    stop = 0
                except GeneratorExit:
                    return
                except BaseException as e:
                    self._raised.append(e)
                    stop = 1

        handlers = signals()
        next(handlers)
        self._poll = CFUNCTYPE(c_int)(handlers.__next__)
        self._c.gorun_set_poll(self._poll)

    def exit_code(self) -> int:
        return int(self._c.gorun_exit_code())


_library: Optional[Library] = None


def library() -> Any:
    """Loads the library, once."""
    global _library
    if _library is None:
        _library = Library()
    return _library

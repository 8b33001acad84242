"""The C library: its functions, and its errors as exceptions."""

import ctypes
import operator
import os
from ctypes import CFUNCTYPE, POINTER, byref, c_char, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint64, c_void_p
from typing import Any, Callable, List, Optional

ABI = 1


class Error(RuntimeError):
    """A call has failed. Which one, and because of which rank, is in its fields."""

    op: str = ""  # the call, such as AllReduce
    seq: int = 0  # its number among the collectives of its group; 0: it has none
    rank: Optional[int] = None  # world rank at fault
    exit_code: Optional[int] = None  # how its process has ended, if that is known
    signal: Optional[int] = None  # the signal that has ended it


class ArgumentError(Error, ValueError):
    """The call is wrong in itself. Nothing was sent, and the group goes on."""


class PeerError(Error):
    """Another rank has died, has left, or does not answer."""


class AbortError(Error):
    """A member has aborted the group."""


class MissingRanksError(Error):
    """Ranks have not come."""


class MismatchError(Error):
    """Ranks have made different calls."""


class DeadlockError(Error):
    """Ranks wait for each other."""


class TruncateError(Error):
    """A message is longer than its buffer. It is lost, and the group goes on."""


class ClosedError(Error):
    """This process has closed the group or the store."""


class RoundOverError(Error):
    """gorun is forming another round: rejoin returns its world."""


class NoRejoinError(Error):
    """Workers do not outlive a round here."""


class MissingKeysError(Error):
    """Nobody has set a key of a store in time."""


class ForkedError(Error):
    """The process has been forked from one that uses gorun."""


_classes = {
    -1: ArgumentError,
    -2: PeerError,
    -3: AbortError,
    -4: MissingRanksError,
    -5: MismatchError,
    -6: DeadlockError,
    -7: TruncateError,
    -8: ClosedError,
    -9: RoundOverError,
    -10: NoRejoinError,
    -11: MissingKeysError,
    -12: ForkedError,
}
_INTERRUPTED = -13


class _Error(ctypes.Structure):
    _fields_ = [
        ("code", c_int),
        ("rank", c_int),
        ("exit_code", c_int),
        ("signal", c_int),
        ("has_died", c_int),
        ("seq", c_uint64),
        ("op", c_char * 32),
        ("text", c_char * 4096),
    ]


class Status(ctypes.Structure):
    """What a receive has received."""

    _fields_ = [("source", c_int), ("tag", c_int), ("count", c_size_t)]


class Buffer(ctypes.Structure):
    """A buffer of a list."""

    _fields_ = [("data", c_void_p), ("count", c_size_t)]


class Options(ctypes.Structure):
    """How to join."""

    _fields_ = [
        ("init_method", c_char_p),
        ("rank", c_int),
        ("size", c_int),
        ("store", c_uint64),
        ("transport", c_char_p),
        ("token", c_char_p),
        ("timeout", c_double),
        ("quiet", c_int),
        ("binding", c_char_p),
    ]


_SET = CFUNCTYPE(c_int, c_void_p, c_char_p, c_void_p, c_size_t)
_GET = CFUNCTYPE(c_int, c_void_p, c_char_p, c_double, c_void_p, c_size_t, POINTER(c_size_t))
_ADD = CFUNCTYPE(c_int, c_void_p, c_char_p, c_int64, POINTER(c_int64))
_SWAP = CFUNCTYPE(c_int, c_void_p, c_char_p, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_size_t, POINTER(c_size_t))
_DELETE = CFUNCTYPE(c_int, c_void_p, c_char_p, POINTER(c_int))


class StoreFunctions(ctypes.Structure):
    """A store that is elsewhere."""

    _fields_ = [
        ("context", c_void_p),
        ("set", _SET),
        ("get", _GET),
        ("add", _ADD),
        ("compare_and_swap", _SWAP),
        ("delete_key", _DELETE),
    ]


OPEN = CFUNCTYPE(c_int, c_void_p, POINTER(c_uint64))  # opens the store of a round


class Int:
    """An argument that is an int of C: ctypes would cut longer ones."""

    @classmethod
    def from_param(cls, value: Any) -> c_int:
        n = operator.index(value)
        if not -(1 << 31) <= n < 1 << 31:
            raise ArgumentError("gorun: %d is out of range" % n)
        return c_int(n)


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
    "all_reduce_coalesced": [POINTER(Buffer), c_int, c_int, c_int],
    "send": [c_void_p, c_size_t, c_int, Int, Int],
}
_others = {
    "init": [POINTER(Options), POINTER(c_uint64)],
    "init_round_store": [POINTER(Options), OPEN, c_void_p, POINTER(c_uint64)],
    "rejoin": [POINTER(c_uint64)],
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
    "store_add": [c_uint64, c_char_p, c_int64, POINTER(c_int64)],
    "store_wait": [c_uint64, POINTER(c_char_p), c_int, c_double],
    "store_delete": [c_uint64, c_char_p, POINTER(c_int)],
    "flight": [c_char_p, c_size_t, POINTER(c_size_t)],
    "explain": [c_uint64, c_char_p, c_size_t, c_char_p, c_size_t, POINTER(c_size_t)],
}


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
        self._c.gorun_version.restype = c_char_p
        self._raised: List[BaseException] = []
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
            except ctypes.ArgumentError as e:
                raise ArgumentError("gorun: %s: %s" % (name, e)) from None
            if code:
                self._fail(code)

        setattr(self, name, call)

    def bind(self, keeps: Any, name: str, *args: Any) -> Callable[[], None]:
        """Returns a function that makes this call. It has the arguments as C takes them, and keeps the buffers."""
        getattr(self, name)  # a name that there is
        types = getattr(self._c, "gorun_" + name).argtypes
        function = self._c["gorun_" + name]  # another object, which converts nothing
        made = tuple(a if isinstance(a, ctypes.Array) else c_int(a) if t is Int else t(a) for t, a in zip(types, args))

        def call(kept: Any = keeps) -> None:
            code = function(*made)
            if code:
                self._fail(code)

        return call

    def _fail(self, code: int) -> None:
        if code == _INTERRUPTED and self._raised:
            raise self._raised.pop()
        last = _Error()
        self._c.gorun_last_error(byref(last))
        error = _classes.get(code, Error)(last.text.decode(errors="replace"))
        error.op, error.seq = last.op.decode(), last.seq
        if last.rank >= 0:
            error.rank = last.rank
        if last.has_died and last.signal:
            error.signal = last.signal
        elif last.has_died:
            error.exit_code = last.exit_code
        raise error

    def watch_signals(self) -> None:
        """Makes calls of this thread that wait for long run Python's signal handlers.

        Python runs them when a frame is resumed. A generator is resumed within its try, which keeps what they raise.
        """

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
        self._poll = ctypes.CFUNCTYPE(c_int)(handlers.__next__)
        self._c.gorun_set_poll(self._poll)

    def exit_code(self) -> int:
        return int(self._c.gorun_exit_code())

    def version(self) -> str:
        return str(self._c.gorun_version().decode())


_library: Optional[Library] = None


def library() -> Any:
    """Loads the library, once."""
    global _library
    if _library is None:
        _library = Library()
    return _library

"""gorun for Python: collectives and messages for numpy, torch and other buffers on CPUs.

>>> import gorun, numpy
>>> world = gorun.init()
>>> grads = numpy.ones(3, numpy.float32)
>>> world.all_reduce(grads, gorun.AVG)

Start the program with gorun --nproc-per-node 4 train.py.
"""

import ctypes
import operator
import os
import weakref
from ctypes import byref, c_int, c_size_t, c_uint64, c_void_p
from typing import Any, Callable, Dict, List, Optional, Sequence, Union

from ._errors import (
    AbortError, ArgumentError, ClosedError, DeadlockError, Error, ForkedError, MismatchError,
    MissingKeysError, MissingRanksError, NoRejoinError, PeerError, RoundOverError, TruncateError,
)  # fmt: skip
from ._group import Group
from ._library import library
from ._mesh import Mesh
from ._messages import ANY_SOURCE, ANY_TAG
from ._ops import AVG, BAND, BOR, BXOR, LAND, LOR, LXOR, MAX, MAXLOC, MIN, MINLOC, PROD, SUM, Op
from ._progress import progress, show_stacks
from ._store import Store
from ._types import Int, OpenFunction, Options, text
from ._work import Received, Work

__all__ = [
    "ANY_SOURCE", "ANY_TAG", "AVG", "BAND", "BOR", "BXOR", "LAND", "LOR", "LXOR", "MAX", "MAXLOC", "MIN", "MINLOC", "PROD", "SUM",
    "AbortError", "ArgumentError", "ClosedError", "DeadlockError", "Error", "ForkedError", "Group", "Mesh", "MismatchError",
    "MissingKeysError", "MissingRanksError", "NoRejoinError", "Op", "PeerError", "Received", "RoundOverError", "Store",
    "TruncateError", "Work", "empty", "exit_code", "flight", "init", "progress", "rejoin",
]  # fmt: skip


def init(
    init_method: Optional[str] = None,
    rank: int = 0,
    size: int = 0,
    transport: Optional[str] = None,
    token: Optional[str] = None,
    timeout: float = 0,
    store: Optional[Store] = None,
    binding: Optional[str] = None,
    round_store: Optional[Callable[[], Store]] = None,
) -> Group:
    """Joins the world and returns it, once every rank has come.

    Without arguments it takes rank and size from the environment that gorun, torchrun or a resource manager sets. timeout
    limits one operation, and init itself, in seconds; 0 is 30 minutes. In the main thread, calls that wait run Python's
    signal handlers, so Ctrl-C ends them.

    With a store, rank and size, ranks meet in it. With round_store, they meet in the Store that it returns, which gorun
    closes; rank and size come from the environment, and rejoin calls it again, when os.environ is that of the next round.

    binding says what runs only on the processors that gorun sets aside for this rank: "auto", the threads that there are
    and what they start, such as OpenMP's threads and forked children; "call", a thread in a call that waits; or "none".
    """
    lib = library()
    if init_method is None and store is None and round_store is None and _is_open(_world):
        raise ArgumentError("gorun: init: it was called twice: use the world that it has returned, or close that first")
    lib.watch_signals()
    if store is not None and not isinstance(store, Store):
        raise ArgumentError("gorun: init: the store is %r: want a gorun.Store" % (store,))
    named = {"init_method": init_method, "transport": transport, "token": token, "binding": binding}
    options = Options(None, Int.from_param(rank), Int.from_param(size), store._handle if store else 0, timeout=timeout)
    for name, value in named.items():
        if value is not None:
            setattr(options, name, text(name, value))
    if round_store is None:
        return _joined(lambda handle: lib.init(byref(options), byref(handle)))
    if store is not None:
        raise ArgumentError("gorun: init: there are a store and a round_store: want one of them")
    opens = OpenFunction(lib.safe(_opener(round_store)))
    _kept.append(opens)
    return _joined(lambda handle: lib.init_round_store(byref(options), opens, None, byref(handle)))


_kept: List[Any] = []  # what C calls when it joins another round


def _opener(round_store: Callable[[], Store]) -> Callable[[Any, Any], None]:
    def opens(_: Any, handle: Any) -> None:
        _take_environment()
        store = round_store()
        handle[0], store._handle = store._handle, 0  # it is C's now

    return opens


def rejoin() -> Group:
    """Returns the world of the next round, after a failure that this process has outlived. The one before is closed."""
    return _joined(lambda handle: library().rejoin(byref(handle)))


_world: Optional[Group] = None  # the last that init or rejoin has returned


def _is_open(world: Optional[Group]) -> bool:
    try:
        return world is not None and library().rank(world._handle, byref(c_int())) is None
    except Error:
        return False  # it has been closed


def _joined(join: Any) -> Group:
    global _world
    show_stacks()
    handle = c_uint64()
    join(handle)
    _take_environment()
    _world = Group(handle.value)
    return _world


def _take_environment() -> None:
    """Shows in os.environ what the library has changed: the rank and the round of this process."""
    getenv = ctypes.CDLL(None).getenv
    getenv.restype, getenv.argtypes = ctypes.c_char_p, [ctypes.c_char_p]
    names = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}
    for name in names | {n for n in os.environ if n.startswith(("GORUN_", "ROLE_", "TORCHELASTIC_"))}:
        value = getenv(name.encode())
        if value is not None and os.environ.get(name) != value.decode():
            os.environ[name] = value.decode()


def empty(group: Group, shape: Union[int, Sequence[int]], dtype: Any = "float32") -> Any:
    """Returns an array of numpy in memory that the ranks of a machine share. Collectives on it copy nothing.

    After rejoin it is memory of the next world. It stays as long as the array, also if its world has been closed.
    """
    import numpy

    if not isinstance(group, Group):
        raise ArgumentError("gorun: empty: the group is %r: want the world of gorun.init, or a group of it" % (group,))
    lengths = (shape,) if hasattr(shape, "__index__") else shape
    made: Dict[str, Any] = {"shape": tuple(map(operator.index, lengths)), "dtype": numpy.dtype(dtype)}
    size = made["dtype"].itemsize
    for n in made["shape"]:
        size *= n
    if made["dtype"].hasobject or min(made["shape"], default=0) < 0 or size >= 1 << 63:
        raise ArgumentError("gorun: empty: there is no array of shape %(shape)s and type %(dtype)s in memory" % made)
    memory = c_void_p()
    library().alloc(group._handle, c_size_t(size), byref(memory))
    if not memory.value:
        return numpy.empty(**made)
    owner = (ctypes.c_char * size).from_address(memory.value)
    end = weakref.finalize(owner, _free, memory.value)
    end.atexit = False
    return numpy.frombuffer(owner, dtype=made["dtype"]).reshape(made["shape"])


def _free(address: int) -> None:
    try:
        library().free(address)
    except ForkedError:
        pass  # it is the parent's


def flight() -> str:
    """Returns the last operations of every open group in JSON, one group a line."""
    length = c_size_t()
    library().flight(None, 0, byref(length))
    room = ctypes.create_string_buffer(length.value + (1 << 16))
    library().flight(room, len(room), byref(length))
    return room.value.decode()


def exit_code() -> int:
    """Returns the exit code with which the process should end because of its last error; gorun learns which rank is at fault."""
    code: int = library().exit_code()
    return code

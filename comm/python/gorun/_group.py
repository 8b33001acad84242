"""Groups."""

import ctypes
from ctypes import byref, c_int, c_size_t, c_uint64
from typing import Any, Callable, List, Optional, Sequence

from ._errors import ArgumentError
from ._library import library
from ._types import Int, text
from ._objects import Objects


def _ints(values: Sequence[int]) -> Any:
    return (c_int * len(values))(*map(Int.from_param, values))


class Group(Objects):
    """An ordered set of ranks. Ranks in its calls are ranks in the group; ranks in errors are ranks in the world.

    Buffers are arrays of numpy, tensors of torch on the CPU, or anything else with Python's buffer protocol. They are
    contiguous. Nothing is copied.
    """

    _meshes = 0

    def __init__(self, handle: int) -> None:
        self._handle = handle
        rank, size = c_int(), c_int()
        library().rank(handle, byref(rank))
        library().size(handle, byref(size))
        self.rank, self.size = rank.value, size.value

    def ranks(self) -> List[int]:
        """The world ranks of the members, in the order of the group."""
        all_of = (c_int * self.size)()
        library().world_ranks(self._handle, all_of)
        return list(all_of)

    def close(self) -> None:
        """Leaves the group. Closing the world closes all groups."""
        library().close(self._handle)

    def abort(self, reason: str) -> None:
        """Makes the group fail on all its members."""
        library().abort(self._handle, text("reason", reason))

    def __enter__(self) -> "Group":
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None:
            self.close()

    def new_group(self, ranks: Sequence[int]) -> Optional["Group"]:
        """Makes a group of some ranks. All members of this one call it. Who is not in it gets None."""
        handle = c_uint64()
        library().comm_create(self._handle, _ints(ranks), len(ranks), byref(handle))
        return Group(handle.value) if handle.value else None

    def group(self, ranks: Sequence[int], name: str) -> "Group":
        """Makes a group of some ranks, which alone call it. Names tell groups of the same ranks apart."""
        handle = c_uint64()
        library().comm_create_group(self._handle, _ints(ranks), len(ranks), text("name", name), byref(handle))
        return Group(handle.value)

    def split(self, color: int, key: int = 0) -> Optional["Group"]:
        """Divides the group by color, in the order of the keys. A negative color gets None."""
        handle = c_uint64()
        library().comm_split(self._handle, color, key, byref(handle))
        return Group(handle.value) if handle.value else None

    def bind(self, name: str, *args: Any, **keywords: Any) -> Callable[[], None]:
        """Checks a collective or a send once, and returns a function that makes it: MPI's persistent calls.

        The function uses the memory that the buffers have now, and takes less time than the call.

        >>> add = world.bind("all_reduce", grads, gorun.AVG)
        >>> add()
        """
        if name not in _BOUND:
            raise ArgumentError("gorun: bind: %r is no call that can be bound: want one of %s" % (name, ", ".join(_BOUND)))
        bound = _Bound(self)
        getattr(bound, name)(*args, **keywords)
        return bound.call

    def explain(self, op: str, size: int) -> str:
        """Says by which algorithm a call on buffers of so many bytes is carried out."""
        length, room = c_size_t(), ctypes.create_string_buffer(1 << 16)
        library().explain(self._handle, text("operation", op), size, room, len(room), byref(length))
        return room.value.decode()


class _Bound(Group):
    """A group that keeps a call instead of making it."""

    def __init__(self, group: Group) -> None:
        self._handle, self.rank, self.size = group._handle, group.rank, group.size
        self.call: Callable[[], None] = lambda: None

    def _do(self, keeps: Any, name: str, *args: Any) -> None:
        self.call = library().bind(keeps, name, self._handle, *args)


_BOUND = (
    "barrier", "all_reduce", "reduce", "scan", "exscan", "broadcast", "all_gather", "gather", "scatter", "reduce_scatter",
    "all_to_all", "all_gatherv", "gatherv", "scatterv", "reduce_scatterv", "all_to_allv", "all_reduce_coalesced", "send",
)  # fmt: skip

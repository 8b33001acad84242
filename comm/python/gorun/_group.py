"""Groups, work, and their calls."""

import collections
import ctypes
from ctypes import byref, c_int, c_size_t, c_uint64
from typing import Any, Callable, Deque, Dict, List, NamedTuple, Optional, Sequence, Tuple

from . import _buffers, _objects
from ._buffers import Place, pair, place
from ._library import ArgumentError, Buffer, Error, Int, Status, library

# Reductions.
SUM, PROD, MIN, MAX, BAND, BOR, BXOR, LAND, LOR, LXOR, MINLOC, MAXLOC, AVG = range(1, 14)

ANY_SOURCE = -1
ANY_TAG = -1


def _ints(values: Sequence[int]) -> Any:
    return (c_int * len(values))(*map(Int.from_param, values))


class Received(NamedTuple):
    """What a receive has received: the sender's rank in the group, the tag, and how many elements."""

    source: int
    tag: int
    count: int


def _received(status: Status) -> Received:
    return Received(status.source, status.tag, status.count)


# What operations under way use, by the handle of their work: a program may drop a Work, or end. So this lives for ever.
_kept: Dict[int, Any] = {}
ctypes.pythonapi.Py_IncRef(ctypes.py_object(_kept))
_dropped: Deque[int] = collections.deque()


def _sweep() -> None:
    """Ends work that the program has dropped and that is done."""
    for _ in range(len(_dropped)):
        handle, done = _dropped.popleft(), c_int(1)
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

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Waits until the operation has ended, and raises its error.

        With a timeout in seconds, it returns False after that; the operation and the group go on.
        """
        status, done = Status(), c_int(1)
        if self._handle:
            try:
                if timeout is None:
                    library().wait(self._handle, byref(status))
                else:
                    library().wait_for(self._handle, timeout, byref(done), byref(status))
            except BaseException as e:
                if timeout is not None and not done.value:
                    raise  # only the wait has ended
                self._end(None, e)
                raise
            if not done.value:
                return False
            self._end(_received(status), None)
        if self._error is not None:
            raise self._error
        return True

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
        self._handle, self._status, self._error = 0, status, error

    def __del__(self, dropped: Deque[int] = _dropped) -> None:
        if self._handle:
            dropped.append(self._handle)


class Group:
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
        library().abort(self._handle, reason.encode())

    def __enter__(self) -> "Group":
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None:
            self.close()

    # Groups.

    def new_group(self, ranks: Sequence[int]) -> Optional["Group"]:
        """Makes a group of some ranks. All members of this one call it. Who is not in it gets None."""
        handle = c_uint64()
        library().comm_create(self._handle, _ints(ranks), len(ranks), byref(handle))
        return Group(handle.value) if handle.value else None

    def group(self, ranks: Sequence[int], name: str) -> "Group":
        """Makes a group of some ranks, which alone call it. Names tell groups of the same ranks apart."""
        handle = c_uint64()
        library().comm_create_group(self._handle, _ints(ranks), len(ranks), name.encode(), byref(handle))
        return Group(handle.value)

    def split(self, color: int, key: int = 0) -> Optional["Group"]:
        """Divides the group by color, in the order of the keys. A negative color gets None."""
        handle = c_uint64()
        library().comm_split(self._handle, color, key, byref(handle))
        return Group(handle.value) if handle.value else None

    # Collectives. Each has a started form, whose name begins with i.

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

    def _do(self, keeps: Any, name: str, *args: Any) -> None:
        getattr(library(), name)(self._handle, *args)

    def _start(self, keeps: Any, name: str, *args: Any) -> Work:
        _sweep()
        handle = c_uint64()
        getattr(library(), "i" + name)(self._handle, *args, byref(handle))
        return Work(handle.value, keeps)

    def barrier(self) -> None:
        """Waits until all ranks have come."""
        self._do(None, "barrier")

    def ibarrier(self) -> Work:
        return self._start(None, "barrier")

    def monitored_barrier(self) -> None:
        """Is barrier, and names the ranks that do not come."""
        self._do(None, "monitored_barrier")

    def _reduction(self, op: str, buffer: Any, out: Any, *more: int) -> Tuple[Any, ...]:
        src = place(op, "the buffer", buffer, out is None, more[0])
        dst = src if out is None else place(op, "out", out, True, more[0])
        if src.type != dst.type:
            raise ArgumentError("gorun: %s: the buffer and out have different types" % op)
        if src.count != dst.count:
            raise ArgumentError("gorun: %s: the buffer has %d elements, and out %d" % (op, src.count, dst.count))
        return ((src.owner, dst.owner), op, src.address, dst.address, src.count, src.type) + more

    def all_reduce(self, buffer: Any, op: int = SUM, out: Any = None) -> None:
        """Combines the buffers of all ranks, in place or in out."""
        self._do(*self._reduction("all_reduce", buffer, out, op))

    def iall_reduce(self, buffer: Any, op: int = SUM, out: Any = None) -> Work:
        return self._start(*self._reduction("all_reduce", buffer, out, op))

    def reduce(self, buffer: Any, root: int = 0, op: int = SUM, out: Any = None) -> None:
        """Combines the buffers of all ranks at root, in place or in out, which only root needs."""
        self._do(*self._reduction("reduce", buffer, out, op, root))

    def ireduce(self, buffer: Any, root: int = 0, op: int = SUM, out: Any = None) -> Work:
        return self._start(*self._reduction("reduce", buffer, out, op, root))

    def scan(self, buffer: Any, op: int = SUM, out: Any = None) -> None:
        """Combines the buffers of this rank and those before it, in place or in out."""
        self._do(*self._reduction("scan", buffer, out, op))

    def iscan(self, buffer: Any, op: int = SUM, out: Any = None) -> Work:
        return self._start(*self._reduction("scan", buffer, out, op))

    def exscan(self, buffer: Any, op: int = SUM, out: Any = None) -> None:
        """Combines the buffers of the ranks before this one, in place or in out. Rank 0's is not changed."""
        self._do(*self._reduction("exscan", buffer, out, op))

    def iexscan(self, buffer: Any, op: int = SUM, out: Any = None) -> Work:
        return self._start(*self._reduction("exscan", buffer, out, op))

    def _broadcast(self, buffer: Any, root: int) -> Tuple[Any, ...]:
        at = place("broadcast", "the buffer", buffer, self.rank != root)
        return at.owner, "broadcast", at.address, at.count, at.type, root

    def broadcast(self, buffer: Any, root: int = 0) -> None:
        """Copies root's buffer to all ranks."""
        self._do(*self._broadcast(buffer, root))

    def ibroadcast(self, buffer: Any, root: int = 0) -> Work:
        return self._start(*self._broadcast(buffer, root))

    def _blocks(self, op: str, buffer: Any, out: Any, split: str, root: Optional[int], *more: int) -> Tuple[Any, ...]:
        """split says which buffer has a block for each rank: in, out or both. Only root needs it, if there is one."""
        here = root is None or root == self.rank
        reduction = more[0] if op == "reduce_scatter" else 0
        src = place(op, "the buffer", buffer, False, reduction) if buffer is not None else None
        dst = place(op, "out", out, True) if out is not None else None
        count, of = None, 0
        for at, name, is_split in ((src, "the buffer", split != "out"), (dst, "out", split != "in")):
            if at is None and (here or not is_split):
                raise ArgumentError("gorun: %s: %s is None" % (op, name))
            if at is None or (is_split and not here):
                continue
            if is_split and at.count % self.size:
                raise ArgumentError("gorun: %s: %s has %d elements: want a multiple of %d" % (op, name, at.count, self.size))
            n = at.count // self.size if is_split else at.count
            if count is not None and (n, at.type) != (count, of):
                raise ArgumentError("gorun: %s: the lengths or types of the buffer and out do not match" % op)
            count, of = n, at.type
        assert count is not None
        keeps = (src and src.owner, dst and dst.owner)
        return (keeps, op, src and src.address, dst and dst.address, count, of) + more

    def all_gather(self, buffer: Any, out: Any) -> None:
        """Collects the buffers of all ranks in out, in the order of ranks."""
        self._do(*self._blocks("all_gather", buffer, out, "out", None))

    def iall_gather(self, buffer: Any, out: Any) -> Work:
        return self._start(*self._blocks("all_gather", buffer, out, "out", None))

    def gather(self, buffer: Any, out: Any = None, root: int = 0) -> None:
        """Collects the buffers of all ranks in root's out."""
        self._do(*self._blocks("gather", buffer, out, "out", root, root))

    def igather(self, buffer: Any, out: Any = None, root: int = 0) -> Work:
        return self._start(*self._blocks("gather", buffer, out, "out", root, root))

    def scatter(self, buffer: Any, out: Any, root: int = 0) -> None:
        """Gives each rank its block of root's buffer."""
        self._do(*self._blocks("scatter", buffer, out, "in", root, root))

    def iscatter(self, buffer: Any, out: Any, root: int = 0) -> Work:
        return self._start(*self._blocks("scatter", buffer, out, "in", root, root))

    def reduce_scatter(self, buffer: Any, out: Any, op: int = SUM) -> None:
        """Combines the buffers of all ranks, and gives each rank its block."""
        self._do(*self._blocks("reduce_scatter", buffer, out, "in", None, op))

    def ireduce_scatter(self, buffer: Any, out: Any, op: int = SUM) -> Work:
        return self._start(*self._blocks("reduce_scatter", buffer, out, "in", None, op))

    def all_to_all(self, buffer: Any, out: Any) -> None:
        """Gives block r of the buffer to rank r, and collects in out what the ranks give to this one."""
        self._do(*self._blocks("all_to_all", buffer, out, "both", None))

    def iall_to_all(self, buffer: Any, out: Any) -> Work:
        return self._start(*self._blocks("all_to_all", buffer, out, "both", None))

    # With a list of buffers, one for each rank.

    def _list(
        self, op: str, name: str, buffers: Sequence[Any], count: int, writable: bool, reduction: int = 0
    ) -> Tuple[Any, int, List[Any]]:
        places = [place(op, "%s[%d]" % (name, i), b, writable, reduction) for i, b in enumerate(buffers)]
        if len(places) != count:
            raise ArgumentError("gorun: %s: %d buffers in %s: want %d" % (op, len(places), name, count))
        if len({p.type for p in places}) > 1:
            raise ArgumentError("gorun: %s: the buffers in %s have different types" % (op, name))
        made = (Buffer * count)(*((p.address, p.count) for p in places))
        return made, places[0].type if places else 0, [p.owner for p in places]

    def _from_one(self, op: str, buffer: Any, out: Optional[Sequence[Any]], root: Optional[int]) -> Tuple[Any, ...]:
        src = place(op, "the buffer", buffer, False)
        made, of, owners = None, src.type, []  # type: Any, int, List[Any]
        if root is None or root == self.rank:
            made, of, owners = self._list(op, "out", [] if out is None else out, self.size, True)
        if of != src.type:
            raise ArgumentError("gorun: %s: the buffer and out have different types" % op)
        more = () if root is None else (root,)
        return ((src.owner, owners, made), op, src.address, src.count, made, of) + more

    def all_gatherv(self, buffer: Any, out: Sequence[Any]) -> None:
        """Is all_gather into a list of buffers, whose lengths may differ."""
        self._do(*self._from_one("all_gatherv", buffer, out, None))

    def iall_gatherv(self, buffer: Any, out: Sequence[Any]) -> Work:
        return self._start(*self._from_one("all_gatherv", buffer, out, None))

    def gatherv(self, buffer: Any, out: Optional[Sequence[Any]] = None, root: int = 0) -> None:
        """Is gather into a list of buffers, whose lengths may differ."""
        self._do(*self._from_one("gatherv", buffer, out, root))

    def igatherv(self, buffer: Any, out: Optional[Sequence[Any]] = None, root: int = 0) -> Work:
        return self._start(*self._from_one("gatherv", buffer, out, root))

    def _to_one(self, op: str, buffers: Optional[Sequence[Any]], out: Any, root: Optional[int], *more: int) -> Tuple[Any, ...]:
        dst = place(op, "out", out, True)
        made, of, owners = None, dst.type, []  # type: Any, int, List[Any]
        if root is None or root == self.rank:
            made, of, owners = self._list(
                op, "the buffers", [] if buffers is None else buffers, self.size, False, more[0] if op == "reduce_scatterv" else 0
            )
        if of != dst.type:
            raise ArgumentError("gorun: %s: the buffers and out have different types" % op)
        return ((dst.owner, owners, made), op, made, dst.address, dst.count, of) + more

    def scatterv(self, buffers: Optional[Sequence[Any]], out: Any, root: int = 0) -> None:
        """Is scatter of a list of buffers, whose lengths may differ."""
        self._do(*self._to_one("scatterv", buffers, out, root, root))

    def iscatterv(self, buffers: Optional[Sequence[Any]], out: Any, root: int = 0) -> Work:
        return self._start(*self._to_one("scatterv", buffers, out, root, root))

    def reduce_scatterv(self, buffers: Sequence[Any], out: Any, op: int = SUM) -> None:
        """Is reduce_scatter of a list of buffers, whose lengths may differ."""
        self._do(*self._to_one("reduce_scatterv", buffers, out, None, op))

    def ireduce_scatterv(self, buffers: Sequence[Any], out: Any, op: int = SUM) -> Work:
        return self._start(*self._to_one("reduce_scatterv", buffers, out, None, op))

    def _counts(self, buffer: Any, counts: Sequence[int], out: Any, out_counts: Sequence[int]) -> Tuple[Any, ...]:
        src, dst = pair("all_to_allv", buffer, out)
        for at, name, list_of in ((src, "the buffer", counts), (dst, "out", out_counts)):
            if len(list_of) != self.size or min(list_of) < 0 or sum(list_of) != at.count:
                raise ArgumentError("gorun: all_to_allv: the counts of %s: want one for each rank, %d in all" % (name, at.count))
        sizes = c_size_t * self.size
        return (src.owner, dst.owner), "all_to_allv", src.address, sizes(*counts), dst.address, sizes(*out_counts), src.type

    def all_to_allv(self, buffer: Any, counts: Sequence[int], out: Any, out_counts: Sequence[int]) -> None:
        """Is all_to_all with blocks of so many elements for, and from, each rank."""
        self._do(*self._counts(buffer, counts, out, out_counts))

    def iall_to_allv(self, buffer: Any, counts: Sequence[int], out: Any, out_counts: Sequence[int]) -> Work:
        return self._start(*self._counts(buffer, counts, out, out_counts))

    def _coalesced(self, buffers: Sequence[Any], op: int) -> Tuple[Any, ...]:
        made, of, owners = self._list("all_reduce_coalesced", "the buffers", buffers, len(buffers), True, op)
        return (owners, made), "all_reduce_coalesced", made, len(buffers), of, op

    def all_reduce_coalesced(self, buffers: Sequence[Any], op: int = SUM) -> None:
        """Is all_reduce of several buffers as if they were one."""
        if len(buffers):
            self._do(*self._coalesced(buffers, op))

    def iall_reduce_coalesced(self, buffers: Sequence[Any], op: int = SUM) -> Work:
        return self._start(*self._coalesced(buffers, op)) if len(buffers) else Work(0, None)

    # Messages.

    def _message(self, op: str, buffer: Any, writable: bool) -> Place:
        return place(op, "the buffer", buffer, writable)

    def send(self, buffer: Any, rank: int, tag: int = 0) -> None:
        """Sends the buffer to a rank."""
        at = self._message("send", buffer, False)
        self._do(at.owner, "send", at.address, at.count, at.type, rank, tag)

    def isend(self, buffer: Any, rank: int, tag: int = 0) -> Work:
        at = self._message("send", buffer, False)
        return self._start(at.owner, "send", at.address, at.count, at.type, rank, tag)

    def recv(self, buffer: Any, rank: int = ANY_SOURCE, tag: int = 0) -> Received:
        """Receives a message, which may be shorter than the buffer."""
        at, status = self._message("recv", buffer, True), Status()
        self._do(at.owner, "recv", at.address, at.count, at.type, rank, tag, byref(status))
        return _received(status)

    def irecv(self, buffer: Any, rank: int = ANY_SOURCE, tag: int = 0) -> Work:
        at = self._message("recv", buffer, True)
        return self._start(at.owner, "recv", at.address, at.count, at.type, rank, tag)

    def sendrecv(self, buffer: Any, dst: int, out: Any, src: int = ANY_SOURCE, tag: int = 0) -> Received:
        """Sends the buffer to dst, and receives into out."""
        sent = self.isend(buffer, dst, tag)
        received = self.recv(out, src, tag)
        sent.wait()
        return received

    def probe(self, rank: int = ANY_SOURCE, tag: int = ANY_TAG) -> Received:
        """Waits for a message, and leaves it where it is."""
        status = Status()
        self._do(None, "probe", rank, tag, byref(status))
        return _received(status)

    def iprobe(self, rank: int = ANY_SOURCE, tag: int = ANY_TAG) -> Optional[Received]:
        """Is probe without waiting: None if there is no message."""
        status, found = Status(), c_int()
        self._do(None, "iprobe", rank, tag, byref(found), byref(status))
        return _received(status) if found.value else None

    # Objects travel as CBOR: None, bool, int, float, str, bytes, lists, tuples (as lists) and dicts.

    def all_gather_object(self, value: Any) -> List[Any]:
        """Returns the objects of all ranks."""
        mine = _objects.encode(value)
        sizes = (ctypes.c_int64 * self.size)()
        self.all_gather((ctypes.c_int64 * 1)(len(mine)), sizes)
        all_of = [bytearray(n) for n in sizes]
        self.all_gatherv(mine, all_of)
        return [_objects.decode(b) for b in all_of]

    def gather_object(self, value: Any, root: int = 0) -> Optional[List[Any]]:
        """Returns the objects of all ranks at root, and None elsewhere."""
        mine = _objects.encode(value)
        sizes = (ctypes.c_int64 * self.size)()
        self.all_gather((ctypes.c_int64 * 1)(len(mine)), sizes)
        all_of = [bytearray(n) for n in sizes] if self.rank == root else None
        self.gatherv(mine, all_of, root)
        return None if all_of is None else [_objects.decode(b) for b in all_of]

    def broadcast_object(self, value: Any = None, root: int = 0) -> Any:
        """Returns root's object."""
        mine = _objects.encode(value) if self.rank == root else b""
        size = (ctypes.c_int64 * 1)(len(mine))
        self.broadcast(size, root)
        data = bytearray(mine) if self.rank == root else bytearray(size[0])
        self.broadcast(data, root)
        return value if self.rank == root else _objects.decode(data)

    def scatter_object(self, values: Optional[Sequence[Any]] = None, root: int = 0) -> Any:
        """Returns this rank's object of root's list."""
        mine = [_objects.encode(v) for v in values or []] if self.rank == root else None
        if mine is not None and len(mine) != self.size:
            raise ArgumentError("gorun: scatter_object: %d objects: want one for each of %d ranks" % (len(mine), self.size))
        size = (ctypes.c_int64 * 1)()
        self.scatter((ctypes.c_int64 * self.size)(*map(len, mine)) if mine is not None else None, size, root)
        data = bytearray(size[0])
        self.scatterv(mine, data, root)
        return _objects.decode(data)

    def send_object(self, value: Any, rank: int, tag: int = 0) -> None:
        """Sends an object."""
        self.send(_objects.encode(value), rank, tag)

    def recv_object(self, rank: int = ANY_SOURCE, tag: int = 0) -> Any:
        """Receives an object."""
        at = self.probe(rank, tag)
        data = bytearray(at.count)
        self.recv(data, at.source, at.tag)
        return _objects.decode(data)

    # What goes on.

    def explain(self, op: str, size: int) -> str:
        """Says by which algorithm a call on buffers of so many bytes is carried out."""
        length, text = c_size_t(), ctypes.create_string_buffer(1 << 16)
        library().explain(self._handle, op.encode(), size, text, len(text), byref(length))
        return text.value.decode()


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

__all__ = ["Group", "Received", "Work", "_buffers"]

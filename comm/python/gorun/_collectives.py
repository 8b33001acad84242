"""Collectives on buffers. Each has a started form, whose name begins with i."""

from typing import Any, Optional, Tuple

from ._buffers import place
from ._calls import Calls
from ._errors import ArgumentError
from ._ops import SUM, Reduction
from ._work import Work


class Collectives(Calls):
    def barrier(self) -> None:
        """Waits until all ranks have come."""
        self._do(None, "barrier")

    def ibarrier(self) -> Work:
        return self._start(None, "barrier")

    def monitored_barrier(self) -> None:
        """Is barrier, and names the ranks that do not come."""
        self._do(None, "monitored_barrier")

    def _reduction(self, op: str, buffer: Any, out: Any, *more: Any) -> Tuple[Any, ...]:
        src = place(op, "the buffer", buffer, out is None, more[0])
        if out is None:
            address, count, of, owner = src
            return ((owner, more[0]), op, address, address, count, of) + more
        dst = place(op, "out", out, True, more[0])
        if src.type != dst.type:
            raise ArgumentError("gorun: %s: the buffer and out have different types" % op)
        if src.count != dst.count:
            raise ArgumentError("gorun: %s: the buffer has %d elements, and out %d" % (op, src.count, dst.count))
        return ((src.owner, dst.owner, more[0]), op, src.address, dst.address, src.count, src.type) + more

    def all_reduce(self, buffer: Any, op: Reduction = SUM, out: Any = None) -> None:
        """Combines the buffers of all ranks, in place or in out."""
        self._do(*self._reduction("all_reduce", buffer, out, op))

    def iall_reduce(self, buffer: Any, op: Reduction = SUM, out: Any = None) -> Work:
        return self._start(*self._reduction("all_reduce", buffer, out, op))

    def reduce(self, buffer: Any, root: int = 0, op: Reduction = SUM, out: Any = None) -> None:
        """Combines the buffers of all ranks at root, in place or in out, which only root needs."""
        self._do(*self._reduction("reduce", buffer, out, op, root))

    def ireduce(self, buffer: Any, root: int = 0, op: Reduction = SUM, out: Any = None) -> Work:
        return self._start(*self._reduction("reduce", buffer, out, op, root))

    def scan(self, buffer: Any, op: Reduction = SUM, out: Any = None) -> None:
        """Combines the buffers of this rank and those before it, in place or in out."""
        self._do(*self._reduction("scan", buffer, out, op))

    def iscan(self, buffer: Any, op: Reduction = SUM, out: Any = None) -> Work:
        return self._start(*self._reduction("scan", buffer, out, op))

    def exscan(self, buffer: Any, op: Reduction = SUM, out: Any = None) -> None:
        """Combines the buffers of the ranks before this one, in place or in out. Rank 0's is not changed."""
        self._do(*self._reduction("exscan", buffer, out, op))

    def iexscan(self, buffer: Any, op: Reduction = SUM, out: Any = None) -> Work:
        return self._start(*self._reduction("exscan", buffer, out, op))

    def _broadcast(self, buffer: Any, root: int) -> Tuple[Any, ...]:
        at = place("broadcast", "the buffer", buffer, self.rank != root)
        return at.owner, "broadcast", at.address, at.count, at.type, root

    def broadcast(self, buffer: Any, root: int = 0) -> None:
        """Copies root's buffer to all ranks."""
        self._do(*self._broadcast(buffer, root))

    def ibroadcast(self, buffer: Any, root: int = 0) -> Work:
        return self._start(*self._broadcast(buffer, root))

    def _blocks(self, op: str, buffer: Any, out: Any, split: str, root: Optional[int], *more: Any) -> Tuple[Any, ...]:
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
        keeps = (src and src.owner, dst and dst.owner, more)
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

    def reduce_scatter(self, buffer: Any, out: Any, op: Reduction = SUM) -> None:
        """Combines the buffers of all ranks, and gives each rank its block."""
        self._do(*self._blocks("reduce_scatter", buffer, out, "in", None, op))

    def ireduce_scatter(self, buffer: Any, out: Any, op: Reduction = SUM) -> Work:
        return self._start(*self._blocks("reduce_scatter", buffer, out, "in", None, op))

    def all_to_all(self, buffer: Any, out: Any) -> None:
        """Gives block r of the buffer to rank r, and collects in out what the ranks give to this one."""
        self._do(*self._blocks("all_to_all", buffer, out, "both", None))

    def iall_to_all(self, buffer: Any, out: Any) -> Work:
        return self._start(*self._blocks("all_to_all", buffer, out, "both", None))

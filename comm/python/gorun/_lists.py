"""Collectives on lists of buffers."""

import operator
from ctypes import c_size_t
from typing import Any, List, Optional, Sequence, Tuple

from ._buffers import pair, place
from ._calls import Calls
from ._errors import ArgumentError
from ._types import Buffer
from ._ops import SUM, Reduction
from ._work import Work


class Lists(Calls):
    def _list(
        self, op: str, name: str, buffers: Sequence[Any], count: int, writable: bool, reduction: Reduction = 0
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

    def _to_one(self, op: str, buffers: Optional[Sequence[Any]], out: Any, root: Optional[int], *more: Any) -> Tuple[Any, ...]:
        dst = place(op, "out", out, True)
        made, of, owners = None, dst.type, []  # type: Any, int, List[Any]
        if root is None or root == self.rank:
            made, of, owners = self._list(
                op, "the buffers", [] if buffers is None else buffers, self.size, False, more[0] if op == "reduce_scatterv" else 0
            )
        if of != dst.type:
            raise ArgumentError("gorun: %s: the buffers and out have different types" % op)
        return ((dst.owner, owners, made, more), op, made, dst.address, dst.count, of) + more

    def scatterv(self, buffers: Optional[Sequence[Any]], out: Any, root: int = 0) -> None:
        """Is scatter of a list of buffers, whose lengths may differ."""
        self._do(*self._to_one("scatterv", buffers, out, root, root))

    def iscatterv(self, buffers: Optional[Sequence[Any]], out: Any, root: int = 0) -> Work:
        return self._start(*self._to_one("scatterv", buffers, out, root, root))

    def reduce_scatterv(self, buffers: Sequence[Any], out: Any, op: Reduction = SUM) -> None:
        """Is reduce_scatter of a list of buffers, whose lengths may differ."""
        self._do(*self._to_one("reduce_scatterv", buffers, out, None, op))

    def ireduce_scatterv(self, buffers: Sequence[Any], out: Any, op: Reduction = SUM) -> Work:
        return self._start(*self._to_one("reduce_scatterv", buffers, out, None, op))

    def _counts(self, buffer: Any, counts: Sequence[int], out: Any, out_counts: Sequence[int]) -> Tuple[Any, ...]:
        src, dst = pair("all_to_allv", buffer, out)
        for at, name, list_of in ((src, "the buffer", counts), (dst, "out", out_counts)):
            if len(list_of) != self.size or min(map(operator.index, list_of)) < 0 or sum(list_of) != at.count:
                raise ArgumentError("gorun: all_to_allv: the counts of %s: want one for each rank, %d in all" % (name, at.count))
        sizes = c_size_t * self.size
        return (src.owner, dst.owner), "all_to_allv", src.address, sizes(*counts), dst.address, sizes(*out_counts), src.type

    def all_to_allv(self, buffer: Any, counts: Sequence[int], out: Any, out_counts: Sequence[int]) -> None:
        """Is all_to_all with blocks of so many elements for, and from, each rank."""
        self._do(*self._counts(buffer, counts, out, out_counts))

    def iall_to_allv(self, buffer: Any, counts: Sequence[int], out: Any, out_counts: Sequence[int]) -> Work:
        return self._start(*self._counts(buffer, counts, out, out_counts))

    def _two_lists(self, buffers: Sequence[Any], out: Sequence[Any]) -> Tuple[Any, ...]:
        ins, of, owners = self._list("all_to_allw", "the buffers", buffers, self.size, False)
        outs, out_of, out_owners = self._list("all_to_allw", "out", out, self.size, True)
        if of != out_of:
            raise ArgumentError("gorun: all_to_allw: the buffers and out have different types")
        return (owners, out_owners, ins, outs), "all_to_allw", ins, outs, of

    def all_to_allw(self, buffers: Sequence[Any], out: Sequence[Any]) -> None:
        """Is all_to_all of a list of buffers, into another one. Their lengths may differ."""
        self._do(*self._two_lists(buffers, out))

    def iall_to_allw(self, buffers: Sequence[Any], out: Sequence[Any]) -> Work:
        return self._start(*self._two_lists(buffers, out))

    def _coalesced(self, buffers: Sequence[Any], op: Reduction) -> Tuple[Any, ...]:
        made, of, owners = self._list("all_reduce_coalesced", "the buffers", buffers, len(buffers), True, op)
        return (owners, made, op), "all_reduce_coalesced", made, len(buffers), of, op

    def all_reduce_coalesced(self, buffers: Sequence[Any], op: Reduction = SUM) -> None:
        """Is all_reduce of several buffers as if they were one."""
        if len(buffers):
            self._do(*self._coalesced(buffers, op))

    def iall_reduce_coalesced(self, buffers: Sequence[Any], op: Reduction = SUM) -> Work:
        return self._start(*self._coalesced(buffers, op)) if len(buffers) else Work(0, None)

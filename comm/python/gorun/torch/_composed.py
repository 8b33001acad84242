"""Calls that are made of others: all_reduce of sparse tensors, and monitored_barrier."""

import time
from typing import Any, List, Optional

import torch
import torch.distributed as dist

from .._group import Group
from .._errors import Error, PeerError
from ._tensors import refuse
from ._work import TimedOut

# torch 2 warns if nobody says whether indices are checked. These are those of tensors.
_UNCHECKED = {"check_invariants": False} if "check_invariants" in (torch.sparse_coo_tensor.__doc__ or "") else {}
_TAG = (1 << 31) - 17  # of messages of monitored_barrier


def all_reduce_sparse(group: Group, t: Any, op: Any) -> None:
    """Adds sparse tensors: all ranks get all indices and values, and add those with the same index."""
    if hash(op) != hash(dist.ReduceOp.SUM):
        raise refuse("all_reduce", "sparse tensors have the reduction SUM only")
    if not t.is_cpu:
        raise refuse("all_reduce", "a tensor is on %s: backend gorun has those on the CPU only" % t.device)
    with torch.no_grad():
        mine = t.coalesce()
        here = torch.tensor([mine._nnz(), mine.sparse_dim(), mine.dense_dim()] + list(mine.shape))
        all_of = torch.empty(group.size, len(here), dtype=torch.int64)
        group.all_gather(here, all_of)
        if any(s != here[1:].tolist() for s in all_of[:, 1:].tolist()):
            raise refuse("all_reduce", "the ranks have sparse tensors of different shapes: %s" % all_of[:, 3:].tolist())
        counts = all_of[:, 0].tolist()
        indices = [torch.empty(mine.sparse_dim(), n, dtype=torch.int64) for n in counts]
        values = [torch.empty([n] + list(mine.shape[mine.sparse_dim() :]), dtype=t.dtype) for n in counts]
        group.all_gatherv(mine.indices().contiguous(), indices)
        group.all_gatherv(mine.values().contiguous(), values)
        total = torch.sparse_coo_tensor(torch.cat(indices, 1), torch.cat(values), t.shape, **_UNCHECKED)
        t.copy_(total.coalesce())


def monitored_barrier(group: Group, seconds: float, wait_all_ranks: bool) -> None:
    """Is barrier, in which rank 0 names the ranks that have not come in time: the first, or all of them."""
    deadline = time.monotonic() + seconds

    def comes(work: Any) -> bool:
        return bool(work.wait(max(deadline - time.monotonic(), 0)))

    if group.rank != 0:
        try:
            group.isend(b"", 0, _TAG)
            if comes(group.irecv(bytearray(), 0, _TAG)):
                return
            why: Optional[Error] = None
        except Error as e:
            why = e
        raise TimedOut(
            "gorun: monitored_barrier: Rank %d successfully reached monitoredBarrier, but received errors while waiting for send/recv "
            "from rank 0 (Timed out after %d ms). Please check rank 0 logs for faulty rank." % (group.rank, seconds * 1000)
        ) from why
    if seconds == 0:
        raise TimedOut("gorun: Rank 0 timed out in monitoredBarrier after 0 ms: give it a timeout")
    missing: List[int] = []
    cause: Optional[Error] = None
    waiting = [(rank, group.irecv(bytearray(), rank, _TAG)) for rank in range(1, group.size)]
    for rank, work in waiting:
        try:
            if comes(work):
                continue
        except PeerError as e:
            cause = e
        missing.append(rank)
        if not wait_all_ranks:
            break
    if missing:
        ranks = "Rank%s %s" % ("s"[: len(missing) > 1], ", ".join(map(str, missing)))
        raise TimedOut("gorun: %s failed to pass monitoredBarrier in %d ms" % (ranks, seconds * 1000)) from cause
    for rank in range(1, group.size):
        group.isend(b"", rank, _TAG)

"""Where the elements of tensors are, and what torch's reductions are called."""

from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

import torch
import torch.distributed as dist

from .. import _buffers
from .. import _ops as ops
from .._errors import ArgumentError
from .._types import Buffer

_TYPES = {getattr(torch, name[6:]): code for name, code in _buffers._torch.items() if hasattr(torch, name[6:])}
_BOOL = _buffers.BOOL
_BY_SIZE = {1: _buffers.UINT8, 2: _buffers.UINT16, 4: _buffers.UINT32, 8: _buffers.UINT64}  # how other types travel

# torch's reductions, by their hash, which is their number
_OPS = {
    hash(getattr(dist.ReduceOp, torchs)): (getattr(ops, ours), torchs)
    for torchs, ours in dict(SUM="SUM", AVG="AVG", PRODUCT="PROD", MIN="MIN", MAX="MAX", BAND="BAND", BOR="BOR", BXOR="BXOR").items()
}
# on bool, as in NCCL: a sum says whether one of them is true
_BOOL_OPS = {
    ops.SUM: ops.LOR, ops.MAX: ops.LOR, ops.BOR: ops.LOR, ops.PROD: ops.LAND, ops.MIN: ops.LAND, ops.BAND: ops.LAND, ops.BXOR: ops.LXOR,
}  # fmt: skip
_BITS = (ops.BAND, ops.BOR, ops.BXOR)
_FLOATS = (_buffers.FLOAT16, _buffers.BFLOAT16, _buffers.FLOAT32, _buffers.FLOAT64, _buffers.COMPLEX64, _buffers.COMPLEX128)


class Place(NamedTuple):
    """Where the elements of a tensor are. tensor is a contiguous copy if that of the caller is not contiguous."""

    tensor: Any
    address: int
    count: int
    type: int


class Copies(List[Tuple[Any, Any]]):
    """What to copy from a contiguous tensor to the caller's, once a call has ended."""

    def run(self) -> None:
        with torch.no_grad():
            for to, of in self:
                to.copy_(of)


def refuse(op: str, why: str) -> ArgumentError:
    return ArgumentError("gorun: %s: %s" % (op, why))


def one(op: str, tensors: Any) -> Any:
    """Returns the tensor of a list that has one."""
    if isinstance(tensors, torch.Tensor):
        return tensors
    if len(tensors) != 1:
        raise refuse(op, "%d tensors: want one for each rank" % len(tensors))
    return tensors[0]


def place(op: str, t: Any, out: Optional[Copies] = None) -> Place:
    """Returns where t is. If the call writes to t, and t is not contiguous, out gets what is to be copied to it afterwards."""
    if not t.is_cpu:
        raise refuse(op, 'a tensor is on %s: backend gorun has those on the CPU only: use new_group(backend="nccl")' % t.device)
    if t.layout is not torch.strided:
        raise refuse(op, "a tensor is sparse, which only all_reduce can be: use to_dense()")
    code = _TYPES.get(t.dtype)
    if code is None:
        code = _BY_SIZE.get(t.element_size(), 0)
        if not code:
            raise refuse(op, "a tensor has type %s, which gorun does not have" % t.dtype)
    elif code == _BOOL:
        code = _buffers.UINT8
    if t.is_contiguous() and not t.is_neg() and not t.is_conj():
        return Place(t, t.data_ptr(), t.numel(), code)
    flat = torch.empty(t.shape, dtype=t.dtype)
    with torch.no_grad():
        flat.copy_(t)
    if out is not None:
        out.append((t, flat))
    return Place(flat, flat.data_ptr(), flat.numel(), code)


def meet(a: Place, b: Place) -> bool:
    """Reports whether two tensors share memory."""
    return a.address < b.address + b.count * b.tensor.element_size() and b.address < a.address + a.count * a.tensor.element_size()


def apart(q: Place, p: Place, at: int, out: Copies) -> Place:
    """Returns where the call is to write q, which is elsewhere if q shares memory with the input p, other than where the call can: at."""
    if q.address == at or not meet(q, p):
        return q
    flat = torch.empty(q.tensor.shape, dtype=q.tensor.dtype)
    out.append((q.tensor, flat))
    return Place(flat, flat.data_ptr(), q.count, q.type)


def places(
    op: str, tensors: Sequence[Any], size: int, out: Optional[Copies] = None, p: Optional[Place] = None, rank: int = -1
) -> Tuple[Any, List[Place]]:
    """Returns a list of C with where size tensors of one type are. If the call writes to them, the input p may be that of rank."""
    if len(tensors) != size:
        raise refuse(op, "%d tensors in a list: want one for each of %d ranks" % (len(tensors), size))
    found = [place(op, t, out) for t in tensors]
    if any(f.type != found[0].type for f in found):
        raise refuse(op, "the tensors of a list have different types")
    if p is not None and out is not None:
        found = [apart(f, p, p.address if i == rank else -1, out) for i, f in enumerate(found)]
        order = sorted((f for f in found if f.count), key=lambda f: f.address)
        if any(meet(a, b) for a, b in zip(order, order[1:])):
            found = [apart(f, f, -1, out) for f in found]  # the last one stays
    return buffers(found), found


def buffers(found: List[Place]) -> Any:
    """Returns a list of C with where tensors are."""
    return (Buffer * len(found))(*[(f.address, f.count) for f in found])


def same_type(op: str, a: Place, b: Place) -> None:
    if a.tensor.dtype != b.tensor.dtype:
        raise refuse(op, "the input has type %s, and the output %s" % (a.tensor.dtype, b.tensor.dtype))


def reduction(name: str, t: Any, op: Any) -> int:
    """Returns gorun's reduction for torch's op on elements of t."""
    found = _OPS.get(hash(op))
    if found is None:
        raise refuse(name, "backend gorun does not have this reduction: want SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR or BXOR")
    ours, torchs = found
    code = _TYPES.get(t.dtype)
    if code is None:
        raise refuse(name, "a tensor has type %s, which cannot be reduced" % t.dtype)
    if code == _BOOL:
        if ours not in _BOOL_OPS:
            raise refuse(name, "Cannot use ReduceOp.%s with Boolean inputs" % torchs)
        return _BOOL_OPS[ours]
    if ours in _BITS and code in _FLOATS:
        raise refuse(name, "Cannot use ReduceOp.%s with non-integral dtype: a tensor has %s" % (torchs, t.dtype))
    return int(ours)

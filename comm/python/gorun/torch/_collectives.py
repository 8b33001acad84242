"""Collectives. torch calls a method by its name of today or before. Each gets torch's options last, or nothing."""

from ctypes import c_size_t
from typing import Any, List, Tuple

import torch
import torch.distributed as dist

from . import _composed
from ._calls import Call, Calls
from ._tensors import Copies, Place, apart, buffers, meet, one, place, places, reduction, refuse, same_type
from ._work import Work


class Collectives(Calls):
    """The collectives of a group."""

    def allreduce(self, tensors: Any, opts: Any = None) -> Work:
        t = one("all_reduce", tensors)
        if t.layout is torch.sparse_coo:
            self._seq += 1
            _composed.all_reduce_sparse(self._member.group, t, _op(opts))
            return self._start([], [t], None, None, False)
        copies = Copies()
        op = reduction("all_reduce", t, _op(opts))
        p = place("all_reduce", t, copies)
        return self._do(opts, [("all_reduce", p.address, p.address, p.count, p.type, op)], [t], p, copies)

    def allreduce_coalesced(self, tensors: Any, opts: Any = None) -> Work:
        copies = Copies()
        if not tensors:
            return self._do(opts, [], [])
        op = reduction("all_reduce_coalesced", tensors[0], _op(opts))
        made, found = places("all_reduce_coalesced", tensors, len(tensors), copies)
        call = ("all_reduce_coalesced", made, len(found), found[0].type, op)
        return self._do(opts, [call], tensors, (made, found), copies)

    allreduce_sparse = allreduce

    def broadcast(self, tensors: Any, opts: Any = None) -> Work:
        t, copies, root = one("broadcast", tensors), Copies(), _root(opts)
        p = place("broadcast", t, copies if root != self._rank else None)
        return self._do(opts, [("broadcast", p.address, p.count, p.type, root)], [t], p, copies)

    def reduce(self, tensors: Any, opts: Any = None, op: Any = dist.ReduceOp.SUM) -> Work:
        t, copies, root = one("reduce", tensors), Copies(), _root(opts)
        how = reduction("reduce", t, getattr(opts, "reduceOp", op))
        p = place("reduce", t, copies if root == self._rank else None)
        return self._do(opts, [("reduce", p.address, p.address, p.count, p.type, how, root)], [t], p, copies)

    def allgather(self, output_tensors: Any, input_tensors: Any, opts: Any = None) -> Work:
        t, copies = one("all_gather", input_tensors), Copies()
        outputs = output_tensors if isinstance(input_tensors, torch.Tensor) else one("all_gather", output_tensors)
        p = place("all_gather", t)
        made, found = places("all_gather", outputs, self._size, copies, p, self._rank)
        same_type("all_gather", p, found[0])
        return self._do(opts, [("all_gatherv", p.address, p.count, made, p.type)], outputs, (p, made, found), copies)

    def allgather_coalesced(self, output_lists: Any, input_list: Any, opts: Any = None) -> Work:
        calls, keeps, copies = [], [], Copies()  # type: List[Call], List[Any], Copies
        for i, t in enumerate(input_list):
            p = place("all_gather_coalesced", t)
            made, found = places("all_gather_coalesced", [of[i] for of in output_lists], self._size, copies, p, self._rank)
            same_type("all_gather_coalesced", p, found[0])
            calls.append(("all_gatherv", p.address, p.count, made, p.type))
            keeps.append((p, made, found))
        return self._do(opts, calls, [t for of in output_lists for t in of], keeps, copies)

    def _gather_single(self, output: Any, input: Any, copies: Copies) -> Tuple[Call, Any]:
        p, q = place("all_gather_into_tensor", input), place("all_gather_into_tensor", output, copies)
        same_type("all_gather_into_tensor", p, q)
        if q.count != p.count * self._size:
            why = "output tensor size must be equal to world_size times input tensor size: %d elements, want %d times %d"
            raise refuse("all_gather_into_tensor", why % (q.count, self._size, p.count))
        q = apart(q, p, p.address - self._rank * p.count * p.tensor.element_size(), copies)
        return ("all_gather", p.address, q.address, p.count, p.type), (p, q)

    def all_gather_single(self, output: Any, input: Any, opts: Any = None) -> Work:
        copies = Copies()
        call, keeps = self._gather_single(output, input, copies)
        return self._do(opts, [call], [output], keeps, copies)

    _allgather_base = all_gather_single

    def all_gather_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        copies = Copies()
        made = [self._gather_single(o, i, copies) for o, i in zip(outputs, inputs)]
        return self._do(opts, [m[0] for m in made], outputs, made, copies)

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def gather(self, output_tensors: Any, input_tensors: Any, opts: Any = None) -> Work:
        t, copies, root = one("gather", input_tensors), Copies(), _root(opts)
        p, made, found, outputs = place("gather", t), None, [], []  # type: Place, Any, List[Place], List[Any]
        if root == self._rank:
            outputs = output_tensors if isinstance(input_tensors, torch.Tensor) else one("gather", output_tensors)
            made, found = places("gather", outputs, self._size, copies, p, root)
            same_type("gather", p, found[0])
        return self._do(opts, [("gatherv", p.address, p.count, made, p.type, root)], outputs, (p, made, found), copies)

    def scatter(self, output_tensors: Any, input_tensors: Any, opts: Any = None) -> Work:
        t, copies, root = one("scatter", output_tensors), Copies(), _root(opts)
        p, made, found = place("scatter", t, copies), None, []  # type: Place, Any, List[Place]
        if root == self._rank:
            inputs = input_tensors if isinstance(output_tensors, torch.Tensor) else one("scatter", input_tensors)
            made, found = places("scatter", inputs, self._size)
            same_type("scatter", found[0], p)
            p = _apart(p, found, self._rank, copies)
        return self._do(opts, [("scatterv", made, p.address, p.count, p.type, root)], [t], (p, made, found), copies)

    def reduce_scatter(self, output_tensors: Any, input_tensors: Any, opts: Any = None) -> Work:
        t, copies = one("reduce_scatter", output_tensors), Copies()
        inputs = input_tensors if isinstance(output_tensors, torch.Tensor) else one("reduce_scatter", input_tensors)
        op = reduction("reduce_scatter", t, _op(opts))
        p, (made, found) = place("reduce_scatter", t, copies), places("reduce_scatter", inputs, self._size)
        same_type("reduce_scatter", found[0], p)
        p = _apart(p, found, self._rank, copies)
        return self._do(opts, [("reduce_scatterv", made, p.address, p.count, p.type, op)], [t], (p, made, found), copies)

    def _scatter_single(self, output: Any, input: Any, op: Any, copies: Copies) -> Tuple[Call, Any]:
        how = reduction("reduce_scatter_tensor", input, op)
        p, q = place("reduce_scatter_tensor", input), place("reduce_scatter_tensor", output, copies)
        same_type("reduce_scatter_tensor", p, q)
        if p.count != q.count * self._size:
            why = "input tensor must be the same size as output size times world size: %d elements, want %d times %d"
            raise refuse("reduce_scatter_tensor", why % (p.count, self._size, q.count))
        q = apart(q, p, p.address + self._rank * q.count * q.tensor.element_size(), copies)
        return ("reduce_scatter", p.address, q.address, q.count, p.type, how), (p, q)

    def reduce_scatter_single(self, output: Any, input: Any, opts: Any = None) -> Work:
        copies = Copies()
        call, keeps = self._scatter_single(output, input, _op(opts), copies)
        return self._do(opts, [call], [output], keeps, copies)

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        copies = Copies()
        made = [self._scatter_single(o, i, _op(opts), copies) for o, i in zip(outputs, inputs)]
        return self._do(opts, [m[0] for m in made], outputs, made, copies)

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    def alltoall(self, output_tensors: Any, input_tensors: Any, opts: Any = None) -> Work:
        copies = Copies()
        made, ins = places("all_to_all", input_tensors, self._size)
        _, outs = places("all_to_all", output_tensors, self._size, copies)
        same_type("all_to_all", ins[0], outs[0])
        order = sorted((f for f in ins + outs if f.count), key=lambda f: f.address)
        if any(meet(a, b) for a, b in zip(order, order[1:])):
            outs = [apart(f, f, -1, copies) if f.tensor is t else f for f, t in zip(outs, output_tensors)]
        call = ("all_to_allw", made, buffers(outs), ins[0].type)
        return self._do(opts, [call], output_tensors, (made, ins, outs, call), copies)

    def _all_to_all(self, output: Any, input: Any, outs: List[int], ins: List[int], copies: Copies) -> Tuple[Call, Any]:
        p, q = place("all_to_all", input), place("all_to_all", output, copies)
        same_type("all_to_all", p, q)
        q = apart(q, p, -1, copies)
        if not outs and not ins and p.count == q.count and p.count % self._size == 0:
            return ("all_to_all", p.address, q.address, p.count // self._size, p.type), (p, q)
        counts = [(c_size_t * self._size)(*_counts(t, of, self._size)) for t, of in ((input, ins), (output, outs))]
        return ("all_to_allv", p.address, counts[0], q.address, counts[1], p.type), (p, q, counts)

    def all_to_all_single(
        self, output_tensor: Any, input_tensor: Any, output_split_sizes: Any = (), input_split_sizes: Any = (), opts: Any = None
    ) -> Work:
        copies = Copies()
        call, keeps = self._all_to_all(output_tensor, input_tensor, list(output_split_sizes), list(input_split_sizes), copies)
        return self._do(opts, [call], [output_tensor], keeps, copies)

    alltoall_base = all_to_all_single

    def barrier(self, opts: Any = None) -> Work:
        return self._do(opts, [("barrier",)], [])


def _op(opts: Any) -> Any:
    """Returns the reduction of options, or what is one itself."""
    return dist.ReduceOp.SUM if opts is None else getattr(opts, "reduceOp", opts)


def _root(opts: Any) -> int:
    return int(opts if isinstance(opts, int) else opts.rootRank)


def _apart(p: Place, inputs: List[Place], rank: int, copies: Copies) -> Place:
    """Returns where the call is to write p, which may be the input of rank."""
    for i, of in enumerate(inputs):
        p = apart(p, of, of.address if i == rank else -1, copies)
    return p


def _counts(t: Any, splits: List[int], size: int) -> List[int]:
    """Returns how many elements of t go to each rank. torch splits by rows."""
    rows = t.shape[0] if t.dim() else 1
    if not splits:
        if rows % size:
            raise refuse("all_to_all", "Tensor's dim 0 does not divide equally across group size: %d rows, %d ranks" % (rows, size))
        splits = [rows // size] * size
    if len(splits) != size:
        raise refuse("all_to_all", "Number of tensor splits not equal to group size: %d, and %d ranks" % (len(splits), size))
    if sum(splits) != rows or min(splits) < 0:
        raise refuse("all_to_all", "Split sizes doesn't match total dim 0 size: %s, and %d rows" % (splits, rows))
    row = t.numel() // rows if rows else 0
    return [n * row for n in splits]

"""Every collective on every type, of several lengths, started and not, beside what numpy computes."""

import itertools
import os
import sys

import gorun
import numpy as np

world = gorun.init(transport=os.environ.get("TRANSPORT"))
rank, size = world.rank, world.size

TYPES = "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()
OPS = {gorun.SUM: np.add.reduce, gorun.PROD: np.multiply.reduce, gorun.MIN: np.minimum.reduce, gorun.MAX: np.maximum.reduce}


def inputs(count, dtype):
    """What the ranks have: small numbers, so that no sum or product is rounded."""
    return [(np.arange(count) * 7 % 3 + r % 3).astype(dtype) for r in range(size)]


def call(name, started, *args):
    if started:
        getattr(world, "i" + name)(*args).wait()
    else:
        getattr(world, name)(*args)


def combined(op, arrays):
    stack = np.stack(arrays)
    return OPS[op](stack, dtype=stack.dtype) if op in (gorun.SUM, gorun.PROD) else OPS[op](stack)


def same(got, want, *what):
    if not np.array_equal(got, want):
        sys.exit("rank %d of %d: %s: got %s, want %s" % (rank, size, what, got, want))


for dtype, (count, started) in itertools.product(TYPES, ((1, False), (5, True), (5, False), (4099, True))):
    all_of = inputs(count, dtype)
    mine, what = all_of[rank], (dtype, count, started)
    for op in OPS:
        if op in (gorun.MIN, gorun.MAX) and dtype.startswith("complex"):
            continue
        want, out = combined(op, all_of), np.empty_like(mine)
        buffer = mine.copy()
        call("all_reduce", started, buffer, op)
        same(buffer, want, "all_reduce", op, *what)
        call("all_reduce", started, mine, op, out)
        same(out, want, "all_reduce to out", op, *what)
        buffer = mine.copy()
        call("reduce", started, buffer, size - 1, op)
        if rank == size - 1:
            same(buffer, want, "reduce", op, *what)
        call("scan", started, mine, op, out)
        same(out, combined(op, all_of[: rank + 1]), "scan", op, *what)
        call("exscan", started, mine, op, out)
        if rank > 0:
            same(out, combined(op, all_of[:rank]), "exscan", op, *what)
        blocks = np.concatenate([mine + np.array(r % 2, dtype) for r in range(size)])
        call("reduce_scatter", started, blocks, out, op)
        same(out, combined(op, [a + np.array(rank % 2, dtype) for a in all_of]), "reduce_scatter", op, *what)
        parts = [mine[: r % 2 + 1] for r in range(size)]
        part = np.empty(min(count, rank % 2 + 1), dtype)
        call("reduce_scatterv", started, parts, part, op)
        same(part, want[: rank % 2 + 1], "reduce_scatterv", op, *what)
    together, out = np.concatenate(all_of), np.empty(count * size, dtype)
    buffer = mine.copy()
    call("broadcast", started, buffer, size - 1)
    same(buffer, all_of[-1], "broadcast", *what)
    call("all_gather", started, mine, out)
    same(out, together, "all_gather", *what)
    call("gather", started, mine, out if rank == 0 else None)
    call("scatter", started, together if rank == 0 else None, buffer)
    same(buffer, mine, "scatter", *what)
    call("all_to_all", started, np.concatenate([mine + np.array(r % 2, dtype) for r in range(size)]), out)
    same(out, np.concatenate([a + np.array(rank % 2, dtype) for a in all_of]), "all_to_all", *what)
    lengths = [min(count, r % 3) for r in range(size)]
    outs = [np.empty(n, dtype) for n in lengths]
    call("all_gatherv", started, mine[: lengths[rank]], outs)
    call("gatherv", started, mine[: lengths[rank]], outs if rank == 0 else None)
    for r, got in enumerate(outs):
        same(got, all_of[r][: lengths[r]], "gatherv", r, *what)
    got = np.empty(lengths[rank], dtype)
    call("scatterv", started, outs if rank == 0 else None, got)
    same(got, mine[: lengths[rank]], "scatterv", *what)
    got = np.empty(lengths[rank] * size, dtype)
    call("all_to_allv", started, np.concatenate([mine[:n] for n in lengths]), lengths, got, [lengths[rank]] * size)
    same(got, np.concatenate([a[: lengths[rank]] for a in all_of]), "all_to_allv", *what)
    outs = [np.empty(lengths[rank], dtype) for _ in range(size)]
    call("all_to_allw", started, [mine[:n].copy() for n in lengths], outs)
    same(np.concatenate(outs), got, "all_to_allw", *what)
    several = [mine.copy(), mine[:1].copy()]
    call("all_reduce_coalesced", started, several, gorun.SUM)
    want = combined(gorun.SUM, all_of)
    same(several[0], want, "all_reduce_coalesced", *what)
    same(several[1], want[:1], "all_reduce_coalesced", *what)
    world.sendrecv(mine, (rank + 1) % size, buffer, (rank - 1) % size)
    same(buffer, all_of[rank - 1], "sendrecv", *what)
shared = gorun.empty(world, (100, 1000), "float64")
shared[:] = rank
world.all_reduce(shared)
same(shared, np.full((100, 1000), size * (size - 1) / 2), "empty")
del shared
world.barrier()
world.close()
print("the same")

"""Every call of torch.distributed by backend gorun, blocking and started, against the results that torch computes."""

import datetime
import os
import sys
import time
import warnings
import weakref

import torch
import torch.distributed as dist

import gorun
import gorun.torch
from gorun.torch._group import Group

warnings.filterwarnings("ignore")
NUMBERS = [
    torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64,
    torch.complex64, torch.bool,
]  # fmt: skip
ANY = NUMBERS + [t for t in (getattr(torch, n, None) for n in ("float8_e4m3fn", "uint16", "complex128")) if t is not None]


def of(rank, dtype, count=5):
    """The tensor of a rank: small whole numbers, whose sums every type has."""
    t = torch.arange(count) * 3 + rank + 1
    return (t % 2).to(dtype) if dtype == torch.bool else (t % 5).to(dtype)


def same(got, want):
    assert got.dtype == want.dtype and got.shape == want.shape, (got, want)
    assert torch.equal(got.view(torch.uint8) if got.dtype.is_floating_point and got.element_size() == 1 else got,
                       want.view(torch.uint8) if got.dtype.is_floating_point and got.element_size() == 1 else want), (got, want)  # fmt: skip


def both(call):
    """Makes a call that waits, and one that is started."""
    assert call(False) is None
    call(True).wait()


def fails(kind, part, call):
    try:
        call()
    except kind as e:
        assert part in str(e), e
        return
    raise AssertionError("no error with %r" % part)


def reductions(rank, size):
    ops = {
        dist.ReduceOp.SUM: lambda s: s.sum(0), dist.ReduceOp.PRODUCT: lambda s: s.prod(0), dist.ReduceOp.MIN: lambda s: s.min(0)[0],
        dist.ReduceOp.MAX: lambda s: s.max(0)[0],
    }  # fmt: skip
    for dtype in NUMBERS:
        for op, do in ops.items():
            if dtype == torch.complex64 and op != dist.ReduceOp.SUM:
                continue
            stack = torch.stack([of(r, dtype) for r in range(size)])
            wide = torch.float64 if dtype.is_floating_point else torch.int64 if dtype != torch.complex64 else dtype
            want = do(stack.to(wide)).to(dtype)
            for started in (False, True):
                t = of(rank, dtype)
                work = dist.all_reduce(t, op, async_op=started)
                if started:
                    work.wait()
                same(t, want)
            if dtype == torch.complex64:
                continue
            t = of(rank, dtype)
            dist.reduce(t, size - 1, op)
            if rank == size - 1:
                same(t, want)
            out = torch.empty(1, dtype=dtype)
            dist.reduce_scatter(out, list(of(rank, dtype, size).split(1)), op)
            flat = torch.empty(1, dtype=dtype)
            dist._reduce_scatter_base(flat, of(rank, dtype, size), op)
            wide_blocks = torch.stack([of(r, dtype, size) for r in range(size)]).to(wide)
            same(out, do(wide_blocks).to(dtype)[rank : rank + 1])
            same(flat, out)
    t = torch.full((3,), float(rank))
    dist.all_reduce(t, dist.ReduceOp.AVG)
    same(t, torch.full((3,), (size - 1) / 2))
    t = torch.tensor([1 << rank])
    dist.all_reduce(t, dist.ReduceOp.BOR)
    assert t.item() == (1 << size) - 1
    many = [of(rank, torch.float32), of(rank, torch.float32, 2)]
    dist.all_reduce_coalesced(many)
    for t in many:
        same(t, sum(of(r, torch.float32, len(t)) for r in range(size)))


def copies(rank, size):
    for dtype in ANY:
        mine = of(rank, dtype)
        everyone = [of(r, dtype) for r in range(size)]
        t = mine.clone()
        both(lambda started: dist.broadcast(t, 1, async_op=started))
        same(t, everyone[1])
        outs = [torch.empty_like(mine) for _ in range(size)]
        both(lambda started: dist.all_gather(outs, mine, async_op=started))
        for got, want in zip(outs, everyone):
            same(got, want)
        into = torch.empty(5 * size, dtype=dtype)
        both(lambda started: dist._all_gather_base(into, mine, async_op=started))
        for got, want in zip(into.split(5), everyone):
            same(got, want)
        if dtype not in NUMBERS:
            continue
        outs = [torch.empty_like(mine) for _ in range(size)] if rank == 1 else None
        both(lambda started: dist.gather(mine, outs, 1, async_op=started))
        if rank == 1:
            for got, want in zip(outs, everyone):
                same(got, want)
        both(lambda started: dist.scatter(t, everyone if rank == 0 else None, async_op=started))
        same(t, mine)
        sends = [of(rank + r, dtype, r + 1) for r in range(size)]
        takes = [torch.empty(rank + 1, dtype=dtype) for _ in range(size)]
        both(lambda started: dist.all_to_all(takes, sends, async_op=started))
        for r, got in enumerate(takes):
            same(got, of(rank + r, dtype, rank + 1))
        flat = torch.empty((rank + 1) * size, 2, dtype=dtype)
        rows = torch.cat(sends).repeat_interleave(2).view(-1, 2)
        dist.all_to_all_single(flat, rows, [rank + 1] * size, [r + 1 for r in range(size)])
        same(flat, torch.cat(takes).repeat_interleave(2).view(-1, 2))


def strided(rank, size):
    """Tensors that are not contiguous, or are views with other signs."""
    t = torch.arange(6.0).view(2, 3).t()
    dist.all_reduce(t)
    same(t, torch.arange(6.0).view(2, 3).t() * size)
    t = torch.zeros(4, 2)[:, rank % 2]
    work = dist.broadcast(t if rank else torch.arange(8.0).view(4, 2)[:, 1], 0, async_op=True)
    work.wait()
    assert not rank or t.tolist() == [1, 3, 5, 7], t
    negative = torch.tensor([1 + 2j]).conj().imag
    assert negative.is_neg()
    outs = [torch.empty(1) for _ in range(size)]
    dist.all_gather(outs, negative)
    same(outs[0], torch.tensor([-2.0]))


def shared(rank, size):
    """Outputs that share memory with the input, or with each other: as if the input were a copy, and in the order of ranks."""
    m = 1 << 17
    for shift in (0, m // 2, rank * m):
        both = torch.arange(size * m).float() + rank
        out = both[shift : shift + m]
        dist._reduce_scatter_base(out, both)
        same(out, torch.arange(rank * m, (rank + 1) * m).float() * size + sum(range(size)))
        both = torch.arange(size * m).float() + rank
        out = both[shift : shift + m]
        dist.reduce_scatter(out, list(both.split(m)))
        same(out, torch.arange(rank * m, (rank + 1) * m).float() * size + sum(range(size)))
        both = torch.zeros(size * m)
        both[shift : shift + m] = rank
        want = torch.arange(size).float().repeat_interleave(m)
        dist._all_gather_base(both, both[shift : shift + m])
        same(both, want)
        both[shift : shift + m] = rank
        dist.all_gather(list(both.split(m)), both[shift : shift + m])
        same(both, want)
        out = both[shift : shift + m]
        dist.scatter(out, list(both.split(m)) if rank == 0 else None)
        same(out, torch.full((m,), float(rank)))
    both, out = torch.arange(size * m).float() + rank, torch.empty(size * m)
    want = torch.cat([torch.arange(rank * m, (rank + 1) * m).float() + r for r in range(size)])
    for to in out, both:
        dist.all_to_all(list(to.split(m)), list(both.split(m)))
        same(to, want)
    both = torch.arange(size * m).float() + rank
    dist.all_to_all_single(both[: size * m - size], both[size:])
    want = [torch.arange(m - 1) + rank * (m - 1) + size + r for r in range(size)]
    same(both[: size * m - size], torch.cat(want).float())
    few = torch.zeros(size + 2)
    dist.all_gather([few[r : r + 3] for r in range(size)], torch.full((3,), float(rank)))
    assert few.tolist() == [float(min(r, size - 1)) for r in range(size + 2)], few


def dropped(rank, size):
    """Works that nobody waits for hold no tensors for ever."""
    for kind in ("message", "dense", "sparse"):
        refs = []
        for i in range(150):
            t = torch.ones(2)
            t = t.to_sparse() if kind == "sparse" else t
            refs.append(weakref.ref(t))
            if kind != "message":
                dist.all_reduce(t, async_op=True)
            elif rank == 0:
                dist.isend(t, 1)
            elif rank == 1:
                dist.irecv(t)
            if i % 10 == 9:
                dist.barrier()
        del t
        assert sum(r() is not None for r in refs) <= 130, "all are alive after calls of kind " + kind


def slow(rank, size):
    """The limit of a group holds for calls that are started, and for futures."""
    for end in (lambda work: work.wait(), lambda work: work.get_future().wait()):
        group = dist.new_group(timeout=datetime.timedelta(seconds=0.1))
        if rank == 0:
            fails(RuntimeError, "", lambda: end(dist.all_reduce(torch.ones(1), group=group, async_op=True)))
        dist.barrier()


def messages(rank, size):
    right, left = (rank + 1) % size, (rank - 1) % size
    t = torch.empty(3)
    work = dist.isend(torch.full((3,), float(rank)), right, tag=4)
    dist.recv(t, left, tag=4)
    work.wait()
    assert t.tolist() == [left] * 3
    if not issubclass(Group, dist.ProcessGroup):
        pass  # torch 2.13 and newer do not learn who has sent a message
    elif rank == 0:
        came = sorted(dist.recv(torch.empty(2), tag=9) for _ in range(size - 1))
        assert came == list(range(1, size)), came
    else:
        dist.send(torch.ones(2), 0, tag=9)
    many = [torch.full((1 << 18,), -1.0) for _ in range(4)]
    batch = [dist.P2POp(dist.irecv, t, left) for t in many]
    batch += [dist.P2POp(dist.isend, torch.full_like(t, float(rank + i)), right) for i, t in enumerate(many)]
    if rank == 0:
        time.sleep(0.1)
    for work in dist.batch_isend_irecv(batch):
        work.wait()
    assert all((t == left + i).all() for i, t in enumerate(many)), many
    future = dist.irecv(t, left).get_future()
    dist.all_reduce(torch.ones(1), async_op=True).get_future().wait()
    dist.send(torch.ones(3), right)
    assert future.wait()[0].tolist() == [1] * 3


def objects(rank, size):
    all_of = [None] * size
    dist.all_gather_object(all_of, {"rank": rank})
    assert [o["rank"] for o in all_of] == list(range(size))
    value = [rank]
    dist.broadcast_object_list(value, 1)
    assert value == [1]
    got = [None]
    dist.scatter_object_list(got, list("abcd"[:size]) if rank == 0 else None)
    assert got == ["abcd"[rank]]


def groups(rank, size):
    everyone = dist.new_group(list(range(size)))
    pair = dist.new_group([size - 1, 0])
    t = torch.ones(1)
    dist.all_reduce(t, group=everyone)
    if rank in (0, size - 1):
        dist.all_reduce(t, group=pair)
        dist.broadcast(t, 0, group=pair)
        dist.barrier(pair)
    assert t.item() == size * (2 if rank in (0, size - 1) and size > 1 else 1), t
    many = [dist.new_group(list(range(size))) for _ in range(20)]
    for g in many:
        dist.barrier(g)
    dist.destroy_process_group(everyone)


def sparse(rank, size):
    t = torch.sparse_coo_tensor([[rank, 3]], [[1.0, 2.0], [3.0, 4.0]], (5, 2))
    want = torch.zeros(5, 2)
    for r in range(size):
        want += torch.sparse_coo_tensor([[r, 3]], [[1.0, 2.0], [3.0, 4.0]], (5, 2)).to_dense()
    dist.all_reduce(t)
    same(t.to_dense(), want)


def wrong(rank, size):
    """Bad input is an error, and the group goes on."""
    if issubclass(Group, dist.ProcessGroup):  # with a backend, torch itself decides about such tensors
        fails(RuntimeError, "sparse", lambda: dist.broadcast(torch.ones(2).to_sparse(), 0))
        fails(ValueError, "on meta", lambda: dist.all_reduce(torch.empty(2, device="meta")))
    fails(ValueError, "Boolean", lambda: dist.all_reduce(torch.ones(2, dtype=torch.bool), dist.ReduceOp.AVG))
    fails(RuntimeError, "non-integral", lambda: dist.all_reduce(torch.ones(2), dist.ReduceOp.BAND))
    fails(Exception, "type", lambda: dist._all_gather_base(torch.ones(2 * size), torch.ones(2).int()))
    fails(Exception, "Split sizes", lambda: dist.all_to_all_single(torch.ones(size), torch.ones(size), [2] * size, [1] * size))
    group = dist.new_group(list(range(size)))
    fails(gorun.MismatchError, "", lambda: dist.all_reduce(torch.ones(2 + rank), group=group))
    dist.barrier()


def main():
    for method in ("env://", "file://" + sys.argv[1]):  # default groups in turn
        rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        dist.init_process_group("gorun", init_method=method, rank=rank, world_size=size)
        dist.barrier()
        pg = dist.distributed_c10d._get_default_group()
        for test in (reductions, copies, strided, shared, dropped, slow, messages, objects, groups, sparse, wrong) if method == "env://" else ():
            test(rank, size)
        pg.monitored_barrier(datetime.timedelta(seconds=20))
        seqs = [None] * size
        before = pg._get_sequence_number_for_group()
        dist.all_gather_object(seqs, before)
        assert len(set(seqs)) == 1, seqs
        dist.destroy_process_group()
        os.environ.pop("GORUN_ROUND", None)  # then ranks meet in torch's store, as without gorun
    print("torch %s: all of it" % torch.__version__)


if __name__ == "__main__":
    main()

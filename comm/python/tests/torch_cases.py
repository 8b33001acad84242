"""What programs of torch do besides calls: torch_cases.py FILE CASE... Each rank prints "all of it" at the end."""

import atexit
import datetime
import itertools
import os
import sys
import threading
import time
import warnings

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import gorun
import gorun.torch  # noqa: F401

warnings.filterwarnings("ignore")
VERSION = tuple(int(n) for n in torch.__version__.split(".")[:2])


def fails(kinds, part, call):
    """Makes a call that must fail, and returns its error."""
    try:
        call()
    except kinds as e:
        assert part in str(e), e
        return e
    raise AssertionError("no error with %r" % part)


def begin(backend="gorun", _count=itertools.count(), **more):
    """Makes a default group. Ranks meet by the environment, and then in another file each time: torch 1.13 keeps what was in a store."""
    n = next(_count)
    if n:
        more.update(init_method="file://%s%d" % (sys.argv[1], n), rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]))
    dist.init_process_group(backend, **more)


def total(group=None, count=1000):
    t = torch.full((count,), dist.get_rank(group) + 1.0)
    dist.all_reduce(t, group=group)
    size = dist.get_world_size(group)
    assert (t == size * (size + 1) / 2).all(), t


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return torch.full((8,), float(i))


def loaders():
    """Workers of a DataLoader, of every kind, while DDP trains."""
    begin()
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Linear(16, 1)))
    for how in ("fork", "spawn", "forkserver"):
        sampler = torch.utils.data.DistributedSampler(Numbers(), shuffle=False)
        loader = torch.utils.data.DataLoader(
            Numbers(), batch_size=8, sampler=sampler, num_workers=2, multiprocessing_context=how, persistent_workers=how != "fork"
        )
        for _ in range(2):
            for batch in loader:
                model(batch).square().mean().backward()
        del loader
        total()
    grads = torch.cat([p.grad.ravel() for p in model.parameters()])
    seen = [torch.empty_like(grads) for _ in range(dist.get_world_size())]
    dist.all_gather(seen, grads)
    assert all(torch.equal(g, grads) for g in seen)


def orders():
    """Two threads call on one group, on each rank in another order: errors, and no other numbers."""
    begin(timeout=datetime.timedelta(seconds=20))
    errors = []

    def of(count):
        try:
            total(count=count)
        except RuntimeError as e:
            errors.append(e)

    threads = [threading.Thread(target=of, args=(n,)) for n in (10, 20)]
    for thread in threads if dist.get_rank() == 0 else reversed(threads):
        thread.start()
        time.sleep(0.2)
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert any(isinstance(e, gorun.MismatchError) for e in errors), errors


def groups():
    """Two groups at once, in two threads, blocking and started."""
    begin()
    pair = [dist.new_group() for _ in range(2)]
    errors = []

    def of(group, count):
        try:
            for _ in range(100):
                total(group, count)
                works = [dist.all_reduce(torch.ones(count), group=group, async_op=True) for _ in range(3)]
                works[2].get_future().wait()
                works[0].wait()
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=of, args=(g, n)) for g, n in zip(pair, (3, 50000))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
    for g in [dist.new_group() for _ in range(20)]:
        total(g)


def leaves():
    """A rank that ends well without destroy_process_group, while a thread is in a call and works are under way."""
    begin()
    other = dist.new_group()
    total()
    if dist.get_rank() == 0:
        threading.Thread(target=lambda: dist.barrier(other), daemon=True).start()
        global work
        work = dist.irecv(torch.zeros(4), 1, tag=99)
        work.get_future()
        time.sleep(0.2)
    dist.barrier()
    atexit.register(print, "all of it", flush=True)


def maps():
    """Backends by device, on a machine that has the CPU only."""
    if VERSION < (2, 1):
        return  # torch has no such names
    for backend in ("cpu:gorun,cuda:nccl", "cpu:gorun,cuda:gloo", "cpu:gorun"):
        if "nccl" in backend and VERSION >= (2, 13) and not dist.is_nccl_available():
            continue  # newer torch refuses to begin
        begin(backend)
        total()
        work = dist.all_reduce(torch.ones(3), async_op=True)
        work.wait()
        got = [None] * dist.get_world_size()
        dist.all_gather_object(got, dist.get_rank())
        assert got == list(range(dist.get_world_size())), got
        total(dist.new_group())
        if dist.get_rank() < 2:
            total(dist.new_group([0, 1], use_local_synchronization=True))
        dist.barrier()
        DistributedDataParallel(torch.nn.Linear(4, 4))(torch.ones(2, 4)).sum().backward()
        dist.destroy_process_group()
    begin("cpu:gloo,cuda:gorun")
    total()


def destroyed():
    """Calls on a group that has been destroyed, and on one whose store has ended."""
    begin()
    group = dist.new_group()
    total(group)
    dist.destroy_process_group(group)
    total()
    dist.barrier()
    dist.destroy_process_group()
    fails((RuntimeError, ValueError), "", dist.barrier)


def different():
    """Ranks whose tensors have other types, sizes or places: an error of all."""
    begin(timeout=datetime.timedelta(seconds=20))
    rank, size = dist.get_rank(), dist.get_world_size()
    kinds = (torch.float32, torch.int32)
    for call in (
        lambda g: dist.all_reduce(torch.ones(2 + rank), group=g),
        lambda g: dist.all_reduce(torch.ones(2, dtype=kinds[rank % 2]), group=g),
        lambda g: dist.all_reduce(torch.ones(2 + rank), group=g, async_op=True).wait(),
        lambda g: dist.all_reduce(torch.ones(2), (dist.ReduceOp.SUM, dist.ReduceOp.MAX)[rank % 2], group=g),
        lambda g: dist.broadcast(torch.ones(2 + rank), 0, group=g),
        lambda g: dist.broadcast(torch.ones(2), rank, group=g),
        lambda g: dist.barrier(g) if rank else dist.all_reduce(torch.ones(1), group=g),
    ):
        fails(gorun.MismatchError, "", lambda: call(dist.new_group()))
    model = torch.nn.Linear(4 + rank, 4)
    fails(RuntimeError, "", lambda: (DistributedDataParallel(model), dist.barrier()))  # rank 0's own check says nothing


def monitored():
    """monitored_barrier, and the name of a rank that does not come."""
    begin()
    dist.monitored_barrier(timeout=datetime.timedelta(seconds=30))
    if dist.get_rank() == 1:
        time.sleep(2)
    elif dist.get_rank() == 0:
        e = fails(RuntimeError, "Rank 1", lambda: dist.monitored_barrier(timeout=datetime.timedelta(seconds=0.5)))
        print(e)


def anybody():
    """recv without src."""
    begin()
    rank, size = dist.get_rank(), dist.get_world_size()
    for dtype in torch.float32, torch.complex64:
        if rank == 0:
            t, came = torch.empty(2, dtype=dtype), []
            for _ in range(size - 1):
                came.append((dist.recv(t), t[0].real.item()))
            assert all(a == b for a, b in came) and sorted(a for a, _ in came) == list(range(1, size)), came
        else:
            dist.send(torch.full((2,), rank, dtype=dtype), 0)
        dist.barrier()



CASES = [groups, destroyed, orders, different, monitored, anybody, loaders, maps, leaves]


def main():
    for case in [globals()[name] for name in sys.argv[2:]] or CASES:
        print(case.__name__, flush=True)
        case()
        if dist.is_initialized() and case is not leaves:
            dist.destroy_process_group()
    if case is not leaves:
        print("all of it", flush=True)


if __name__ == "__main__":
    main()

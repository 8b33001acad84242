"""What torch 2 has besides: functional collectives, DTensor, FSDP2, torch.compile over DDP, coalesced calls, groups by members alone."""

import sys

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as fun
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel

import gorun.torch  # noqa: F401
from gorun.torch._group import Group


def functional(rank, size):
    t = torch.full((4,), float(rank))
    total = size * (size - 1) / 2
    group = dist.group.WORLD
    assert fun.all_reduce(t, "sum", group).tolist() == [total] * 4
    assert fun.all_gather_tensor(t[:1], 0, group).tolist() == [float(r) for r in range(size)]
    assert fun.reduce_scatter_tensor(torch.ones(size), "sum", 0, group).tolist() == [size]
    both = fun.all_reduce_coalesced([t, t + 1], "sum", group)
    assert both[1].tolist() == [total + size] * 4
    many = fun.all_gather_into_tensor_coalesced([t[:1], t[:2]], group)
    assert many[1].tolist() == [float(r) for r in range(size) for _ in range(2)]
    cuts = fun.reduce_scatter_tensor_coalesced([torch.ones(size), torch.ones(2 * size)], "sum", [0, 0], group)
    assert cuts[1].tolist() == [size] * 2
    moved = fun.all_to_all_single(torch.arange(float(size)) + rank * size, None, None, group)
    assert moved.tolist() == [float(r * size + rank) for r in range(size)], moved
    assert fun.broadcast(t, 1, group).tolist() == [1.0] * 4


def coalesced(rank, size):
    a, b = torch.ones(2), torch.full((3,), float(rank))
    with dist._coalescing_manager() as _:
        dist.all_reduce(a)
        dist.all_reduce(b)
    assert a.tolist() == [size] * 2 and b.tolist() == [size * (size - 1) / 2] * 3
    with dist._coalescing_manager(async_ops=True) as manager:
        outs = [torch.empty(size), torch.empty(2 * size)]
        dist.all_gather_into_tensor(outs[0], torch.full((1,), float(rank)))
        dist.all_gather_into_tensor(outs[1], torch.full((2,), float(rank)))
    manager.wait()
    assert outs[0].tolist() == [float(r) for r in range(size)], outs
    if Group._in_python:  # newer torch does so with no backend of CPU tensors
        got, left = torch.full((1 << 18,), -1.0), (rank - 1) % size
        with dist._coalescing_manager(device=torch.device("cpu"), async_ops=True) as manager:
            work = dist.irecv(got, left)
            dist.isend(torch.full_like(got, float(rank)), (rank + 1) % size)
        work.wait()  # that of one call, which is also in the manager's
        assert (got == left).all(), got
        manager.wait()


def dtensor(rank, size):
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    mesh = init_device_mesh("cpu", (size,))
    whole = torch.arange(16.0 * size).view(size * 4, 4)
    x = distribute_tensor(whole, mesh, [Shard(0)])
    y = distribute_tensor(torch.eye(4), mesh, [Replicate()])
    assert torch.equal((x @ y).full_tensor(), whole)
    assert torch.equal(x.redistribute(mesh, [Shard(1)]).full_tensor(), whole)
    assert x.sum().full_tensor().item() == whole.sum().item()


def alone(rank, size):
    """A group that only its members make."""
    if rank < 2:
        pair = dist.new_group([0, 1], use_local_synchronization=True)
        t = torch.ones(1)
        dist.all_reduce(t, group=pair)
        assert t.item() == 2


def fsdp(rank, size):
    from torch.distributed.fsdp import fully_shard

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 8))
    for layer in (model[0], model[2], model):
        fully_shard(layer, mesh=init_device_mesh("cpu", (size,)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(torch.ones(2, 8)).square().sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[2] < losses[0], losses


def compiled(rank, size):
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 8)))
    step = torch.compile(model, backend="aot_eager")
    step(torch.full((2, 8), float(rank))).sum().backward()
    grads = [p.grad.clone() for p in model.parameters()]
    seen = [torch.empty_like(grads[0]) for _ in range(size)]
    dist.all_gather(seen, grads[0])
    assert all(torch.equal(g, grads[0]) for g in seen)


def main():
    dist.init_process_group("cpu:gorun" if "map" in sys.argv else "gorun")
    rank, size = dist.get_rank(), dist.get_world_size()
    tests = [functional, coalesced, dtensor, alone, compiled]
    version = tuple(int(n) for n in torch.__version__.split(".")[:2])
    if version >= (2, 13):
        tests.append(fsdp)  # before, torch's own fails on CPUs
    for test in [globals()[name] for name in sys.argv[2:]] or tests:
        test(rank, size)
    dist.destroy_process_group()
    print("torch %s: all of it" % torch.__version__)


main()

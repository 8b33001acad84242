"""Compares backend gorun with gloo, call by call, in one run, and prints a table.

    gorun --nproc-per-node 2 torch_bench.py [part of a name]
    gorun --nproc-per-node 2 torch_bench.py ddp

The backends take turns. A time is the median of the slowest rank's, in microseconds; of a step of DDP, in milliseconds.
"""

import statistics
import sys
import time
import warnings

import torch
import torch.distributed as dist

import gorun.torch  # noqa: F401

SIZES = ((8, 300), (256 << 10, 100), (25 << 20, 6))  # bytes, and how often in a turn


def calls(group, count):
    """Yields the calls on count elements."""
    rank, size = dist.get_rank(), dist.get_world_size()
    block = max(count // size, 1)
    t, u = torch.ones(count), torch.ones(count)
    whole, blocks = torch.ones(count * size), [torch.ones(count) for _ in range(size)]
    cut, cut_out, mine = torch.ones(block * size), torch.ones(block * size), torch.ones(block)
    yield "all_reduce", lambda: dist.all_reduce(t, group=group)
    yield "all_reduce, started", lambda: dist.all_reduce(t, group=group, async_op=True).wait()
    yield "all_reduce, future", lambda: dist.all_reduce(t, group=group, async_op=True).get_future().wait()
    yield "reduce", lambda: dist.reduce(t, 0, group=group)
    yield "broadcast", lambda: dist.broadcast(t, 0, group=group)
    yield "all_gather", lambda: dist.all_gather(blocks, t, group=group)
    yield "all_gather_into_tensor", lambda: dist._all_gather_base(whole, t, group=group)
    yield "gather", lambda: dist.gather(t, blocks if rank == 0 else None, 0, group=group)
    yield "scatter", lambda: dist.scatter(t, blocks if rank == 0 else None, 0, group=group)
    yield "reduce_scatter", lambda: dist.reduce_scatter(mine, list(cut.split(block)), group=group)
    yield "reduce_scatter_tensor", lambda: dist._reduce_scatter_base(mine, cut, group=group)
    yield "all_to_all_single", lambda: dist.all_to_all_single(cut_out, cut, group=group)
    if rank < 2:
        yield "send and recv", lambda: [dist.send(t, 1, group=group), dist.recv(u, 1, group=group)] if rank == 0 else [
            dist.recv(u, 0, group=group), dist.send(t, 0, group=group)]  # fmt: skip
    else:
        yield "send and recv", lambda: None
    if count == 2:
        yield "barrier", lambda: dist.barrier(group)


def turn(call, times):
    dist.barrier()
    start = time.perf_counter()
    for _ in range(times):
        call()
    took = torch.tensor([(time.perf_counter() - start) / times * 1e6], dtype=torch.float64)
    dist.all_reduce(took, dist.ReduceOp.MAX)
    return took.item()


def ddp(groups, say):
    """Compares steps of models of so many layers of so many squared, in buckets as DDP makes them."""
    for layers, width, batch in ((4, 64, 16), (4, 256, 16), (4, 1024, 1), (4, 1024, 16), (4, 2048, 1), (25, 1024, 1)):
        steps, took, x = max(2, 2**24 // (batch * layers * width**2)), {"gloo": [], "gorun": []}, torch.randn(batch, width)
        models = {}
        for backend in took:
            model = torch.nn.Sequential(*[torch.nn.Linear(width, width) for _ in range(layers)])
            models[backend] = torch.nn.parallel.DistributedDataParallel(model, process_group=groups[backend])
        for _ in range(9):
            for backend, model in models.items():
                took[backend].append(turn(lambda: [model.zero_grad(), model(x).sum().backward()], steps) / 1e3)  # noqa: B023
        a, b = (statistics.median(took[backend][1:]) for backend in ("gloo", "gorun"))
        say("%d × %d, batch of %d: gloo %.2f, gorun %.2f, %+.0f %%" % (layers, width, batch, a, b, 100 * (b / a - 1)))


def main():
    warnings.simplefilter("ignore")  # the names before torch 2 still work
    torch.set_num_threads(1)
    dist.init_process_group("gorun")
    groups = {"gorun": dist.group.WORLD, "gloo": dist.new_group(backend="gloo")}
    say = print if dist.get_rank() == 0 else lambda *_, **__: None
    say("torch %s, %d ranks" % (torch.__version__, dist.get_world_size()))
    if sys.argv[1:] == ["ddp"]:
        return ddp(groups, say)
    say("| call | %s |" % " | ".join(size + ": gloo | gorun | times" for size in ("8 B", "256 KiB", "25 MiB")))
    rows = {}
    for n, times in SIZES:
        for (name, ours), (_, gloos) in zip(calls(groups["gorun"], n // 4), calls(groups["gloo"], n // 4)):
            if any(part not in name for part in sys.argv[1:]):
                continue
            took = {"gorun": [], "gloo": []}
            try:
                for i in range(7):
                    for backend, call in (("gloo", gloos), ("gorun", ours)):
                        took[backend].append(turn(call, times if i else 3))
            except RuntimeError as e:  # gloo does not have all calls in all versions, and refuses them without a message to others
                if "gorun" in str(e) or took["gorun"]:
                    raise
                took = {"gorun": [turn(ours, times) for _ in range(7)], "gloo": []}
            a, b = statistics.median(took["gloo"][1:] or [0]), statistics.median(took["gorun"][1:])
            rows.setdefault(name, []).append("%.0f | %.1f | %.1f" % (a, b, a / b) if a else "– | %.1f | –" % b)
    for name, cells in rows.items():
        say("| %s | %s |" % (name, " | ".join(cells)))


main()

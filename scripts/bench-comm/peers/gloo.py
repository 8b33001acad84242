"""The side of gloo, by torch.distributed; worker.go and mpi.c are the same for the others.

    gloo.py OPS SIZES STATES SECONDS

Lists have commas in them; see main.go for what is measured. Rank 0 prints "result OP BYTES STATE MICROSECONDS" a cell.
"""
import os
import sys
import time

import torch
import torch.distributed as dist

BATCHES, FEW = 9, 3  # of a cell; of one whose calls are slow

os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()


def ping_pong(a, b):
    if rank == 0:
        dist.send(a, 1)
        dist.recv(b, 1)
    elif rank == 1:
        dist.recv(b, 0)
        dist.send(a, 0)


def buckets(a):
    for work in [dist.all_reduce(part, async_op=True) for part in a.chunk(8)]:
        work.wait()


def operation(op, a, b):
    """Returns the call, and what this rank sends by it."""
    part, parts = a[: len(a) // size], list(b.chunk(size))
    return {
        "all_reduce": (lambda: dist.all_reduce(a), a),
        "buckets": (lambda: buckets(a), a),
        "reduce": (lambda: dist.reduce(a, 0), a),
        "broadcast": (lambda: dist.broadcast(a, 0), a),
        "all_gather": (lambda: dist.all_gather(parts, part), part),
        "reduce_scatter": (lambda: dist.all_reduce(a), a),  # gloo has none: people all-reduce and keep their slice
        "all_to_all": (lambda: dist.all_to_all_single(b, a), a),
        "sendrecv": (lambda: ping_pong(a, b), a[: len(a) if rank < 2 else 0]),
        "barrier": (dist.barrier, a),
    }[op]


def mean(before, call, count):
    """Returns how long one of count calls takes this rank, rewriting included if there is any."""
    dist.barrier()
    began = time.perf_counter()
    for _ in range(count):
        if before:
            before()
        if call:
            call()
    return (time.perf_counter() - began) / count


def slowest(mine):
    t = torch.tensor([mine], dtype=torch.float64)
    dist.all_reduce(t, op=dist.ReduceOp.MAX)
    return t.item()


def measure(before, call, seconds):
    """Returns the median over batches of the slowest rank's mean."""
    mean(before, call, 1)  # the first makes connections, and maps memory
    count = 1
    while (one := slowest(mean(before, call, count))) * count < seconds / 20:
        count *= 2
    rounds, count = BATCHES, int(seconds / BATCHES / one)
    if count < 1:
        rounds, count = max(FEW, int(seconds / one)), 1
    times = []
    for _ in range(rounds):
        mine = mean(before, call, count)
        if before:
            mine -= mean(before, None, count)
        times.append(slowest(mine))
    return sorted(times)[rounds // 2]


def main(ops, sizes, states, seconds):
    for op in ops.split(","):
        for nbytes in [0] if op == "barrier" else map(int, sizes.split(",")):
            a, b = torch.zeros(nbytes // 4), torch.zeros(nbytes // 4)
            call, sent = operation(op, a, b)
            stamp = 0.0

            def rewrite():
                nonlocal stamp
                stamp = 1 - stamp
                sent.fill_(stamp)

            for state in ["hot"] if op == "barrier" else states.split(","):
                took = measure(rewrite if state == "dirty" else None, call, float(seconds))
                if op == "sendrecv":
                    took /= 2  # there and back
                if rank == 0:
                    print(f"result {op} {nbytes} {state} {took * 1e6:.4f}", flush=True)


main(*sys.argv[1:])
dist.barrier()
dist.destroy_process_group()  # or else its threads may abort the interpreter's exit

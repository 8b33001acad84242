"""A worker that computes with the others, by torch.distributed over gloo. Rank 1 dies after a while, once.

    recover.py DIR

It leaves in DIR the files that recover.go says.
"""
import os
import signal
import sys
import time

import torch
import torch.distributed as dist

directory = sys.argv[1]
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")


def stamp(name):
    unseen = os.path.join(directory, "writing-" + name)
    with open(unseen, "w") as file:
        file.write(str(time.time_ns()))
    os.rename(unseen, os.path.join(directory, name))


def all_reduces():
    attempt = "1" if os.path.exists(os.path.join(directory, "died")) else "0"
    rank, size = dist.get_rank(), dist.get_world_size()
    for i in range(200):
        total = torch.ones(1)
        dist.all_reduce(total)
        if total.item() != size:
            sys.exit(f"the sum is {total.item()}, want {size}")
        if i == 0:
            stamp(f"right-{attempt}-{rank}")
        if attempt == "0" and i == 100 and rank == 1:
            stamp("died")
            os.kill(os.getpid(), signal.SIGKILL)


def compute(init_method):
    dist.init_process_group("gloo", init_method=init_method)
    all_reduces()


if "GORUN_ROUND_SOCKET" in os.environ:  # gorun --on-failure=replace
    import gorun.elastic
    import gorun.torch

    gorun.elastic.run(lambda state: compute("gorun://"), gorun.elastic.State(step=0))
else:
    compute("env://")
    dist.barrier()
    dist.destroy_process_group()

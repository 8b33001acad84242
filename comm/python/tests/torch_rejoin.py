"""Survivors go on in the same process when a rank ends, or hangs: gorun --on-failure=replace --max-restarts=1 torch_rejoin.py - [hangs|meeting|met]."""

import os
import sys
import threading

import torch
import torch.distributed as dist

import gorun.torch  # noqa: F401
from gorun.torch import _meet


hangs, meeting, met = (sys.argv[2:] == [when] for when in ("hangs", "meeting", "met"))
if os.environ["GORUN_ROUND"] == "1" and os.environ["RANK"] == "1":
    if meeting:  # it ends before torch has a process group
        dist.distributed_c10d._store_based_barrier = lambda *_, **__: os._exit(9)
    if met:  # as soon as all others may have one
        real = _meet.barrier
        _meet.barrier = lambda: real() and os._exit(9)


def train():
    dist.init_process_group("gorun", init_method="gorun://")
    for step in range(20):
        t = torch.ones(3)
        dist.all_reduce(t)
        if os.environ["GORUN_ROUND"] == "1" and dist.get_rank() == 1 and (meeting or met or step == 5):
            if hangs:
                threading.Event().wait()
            os._exit(9)
    dist.barrier()


try:
    train()
except gorun.PeerError as e:
    assert e.rank == 1 and (hangs or e.exit_code == 9), (e, e.exit_code)
    if dist.is_initialized():
        dist.destroy_process_group()
    gorun.rejoin()
    train()
print("round %s: all of it" % os.environ["GORUN_ROUND"])

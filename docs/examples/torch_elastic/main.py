"""Data-parallel training that outlives its ranks: what is lost with one is the step that was under way.

    gorun --preload auto --on-failure replace --max-restarts 3 --nproc-per-node 2 docs/examples/torch_elastic/main.py --kill 1@40
"""

import argparse
import os
import signal
import zlib

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import gorun.elastic
import gorun.torch  # noqa: F401  not needed from torch 2.5 on, if the wheel is installed

parser = argparse.ArgumentParser()
parser.add_argument("--backend", default="gorun")
parser.add_argument("--steps", type=int, default=100)
parser.add_argument("--kill", default="", help="a rank, and the step in which it kills itself, such as 1@40,0@70")
args = parser.parse_args()
kills = [tuple(map(int, pair.split("@"))) for pair in args.kill.split(",") if pair]

torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
state = gorun.elastic.State(model=model, optimizer=optimizer, step=0, killed=0)


def batch(step, rank):
    """The samples of a rank in a step: where training is in its data follows from the state."""
    x = torch.randn(16, 8, generator=torch.Generator().manual_seed(1000 * step + rank))
    return x, x.sin().sum(1, keepdim=True)


def train(state):
    dist.init_process_group(args.backend, init_method="gorun://")
    rank, ddp = dist.get_rank(), DistributedDataParallel(model)
    while state.step < args.steps:
        x, y = batch(state.step, rank)
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(ddp(x), y)
        if kills[state.killed :] and kills[state.killed][1] == state.step:
            state.killed += 1
            state.commit()  # or the new rank would die in this step, too
            if kills[state.killed - 1][0] == rank:
                os.kill(os.getpid(), signal.SIGKILL)
        loss.backward()
        optimizer.step()
        state.step += 1
        state.commit()
    if rank == 0:
        bits = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
        print(f"step {state.step}: loss {loss.item():.4f}, parameters {zlib.crc32(bits):08x}, outlived {state.killed}")


gorun.elastic.run(train, state)

"""Tensor parallelism by DTensors, or FSDP2: each rank keeps its shards, and those of its optimizer. $KILLS says which ranks die.

The result is that of one process, as far as float32 goes. $SHARDS is fsdp or tensor, and $BACKEND gorun or gloo.
"""

import os
import signal

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import gorun.elastic
import gorun.torch  # noqa: F401
from gorun.elastic import Part

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
kills = [tuple(map(int, pair.split("@"))) for pair in os.environ.get("KILLS", "1@9").split(",") if pair]
fsdp = os.environ.get("SHARDS") == "fsdp"  # on CPUs, torch can do that from 2.13 on
state = gorun.elastic.State(step=0, shards=Part("shards %d" % rank, {}))


def new_model():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(8, 30), torch.nn.Tanh(), torch.nn.Linear(30, 1))


def step(model, optimizer, n):
    x = torch.randn(16, 8, generator=torch.Generator().manual_seed(n))
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def train(state):
    dist.init_process_group(os.environ.get("BACKEND", "gorun"), init_method="gorun://")
    model = new_model()
    mesh = init_device_mesh("cpu", (size,))
    if fsdp:
        from torch.distributed.fsdp import fully_shard

        fully_shard(model, mesh=mesh)
    else:
        parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    if state.shards:
        gorun.elastic.load(model, state.shards["model"])
        gorun.elastic.load(optimizer, state.shards["optimizer"])
    death = kills[int(os.environ["GORUN_ROUND"]) - 1 :][:1]
    while state.step < 30:
        if death == [(rank, state.step)]:
            os.kill(os.getpid(), signal.SIGKILL)
        step(model, optimizer, state.step)
        state.step += 1
        state.shards = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        state.commit()
    alone = new_model()
    optimizer = torch.optim.Adam(alone.parameters(), lr=0.01)
    for n in range(30):
        step(alone, optimizer, n)
    for p, q in zip(model.parameters(), alone.parameters()):
        whole = p.full_tensor() if hasattr(p, "full_tensor") else p
        assert torch.allclose(whole, q, rtol=1e-4, atol=1e-5), (whole, q)
    print("rank %d: all of it, round %s" % (rank, os.environ["GORUN_ROUND"]))


gorun.elastic.run(train, state)

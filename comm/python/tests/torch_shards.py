"""Tensor parallelism by DTensors, or FSDP2: each rank keeps its shards, and those of its optimizer. $KILLS says which ranks die."""

import os
import signal
import sys

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import gorun.elastic
import gorun.torch  # noqa: F401
from gorun.elastic import Part

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
kills = [tuple(map(int, pair.split("@"))) for pair in os.environ["KILLS"].split(",") if pair]
state = gorun.elastic.State(step=0, shards=Part("shards %d" % rank, {}))


def train(state):
    dist.init_process_group(sys.argv[1], init_method="gorun://")
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(8, 30), torch.nn.Tanh(), torch.nn.Linear(30, 1))
    mesh = init_device_mesh("cpu", (size,))
    if sys.argv[2] == "fsdp":  # on CPUs, torch can do that from 2.13 on
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
        x = torch.randn(16, 8, generator=torch.Generator().manual_seed(100 * state.step + rank * (sys.argv[2] == "fsdp")))
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        state.step += 1
        state.shards = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        state.commit()
    total = sum(p.full_tensor().double().square().sum() for p in model.parameters())
    if rank == 0:
        print("parameters %.17g" % total)


gorun.elastic.run(train, state)

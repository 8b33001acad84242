"""Tensor-parallel training: each rank has a shard of a layer, with an optimizer of its own, and all have the rest. $KILLS says which ranks die."""

import os
import signal
import sys
import zlib

import torch
import torch.distributed as dist

import gorun.elastic
import gorun.torch  # noqa: F401
from gorun.elastic import Part

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
kills = [tuple(map(int, pair.split("@"))) for pair in os.environ["KILLS"].split(",") if pair]
backend = sys.argv[1]

torch.manual_seed(rank)
shard = torch.nn.Linear(8, 16)
own = torch.optim.Adam(shard.parameters(), lr=0.01)
torch.manual_seed(100)
head = torch.nn.Linear(16, 1)
rest = torch.optim.SGD(head.parameters(), lr=0.01, momentum=0.9)
state = gorun.elastic.State(
    step=0, head=head, rest=rest, shard=Part("shard %d" % rank, shard), own=Part("optimizer %d" % rank, own)
)  # fmt: skip


class Sum(torch.autograd.Function):
    """The sum of what the ranks have: each gets the same gradient."""

    @staticmethod
    def forward(context, x):
        x = x.clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(context, gradient):
        return gradient


def train(state):
    dist.init_process_group(backend, init_method="gorun://")
    death = kills[int(os.environ["GORUN_ROUND"]) - 1 :][:1]
    while state.step < 40:
        if death == [(rank, state.step)]:
            os.kill(os.getpid(), signal.SIGKILL)
        x = torch.randn(16, 8, generator=torch.Generator().manual_seed(state.step))
        loss = (head(Sum.apply(shard(x).tanh())) - x.sum(1, keepdim=True)).square().mean()
        own.zero_grad()
        rest.zero_grad()
        loss.backward()
        own.step()
        rest.step()
        state.step += 1
        state.commit()
    sums = [None] * size
    dist.all_gather_object(sums, zlib.crc32(b"".join(p.detach().numpy().tobytes() for m in (shard, head) for p in m.parameters())))
    if rank == 0:
        print("parameters", sums)


gorun.elastic.run(train, state)

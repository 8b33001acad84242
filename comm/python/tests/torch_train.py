"""Training with backend gorun gives the bits that gloo gives: DDP, uneven inputs, hooks, ZeRO, sparse gradients."""

import os
import signal
import sys

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

import gorun.torch  # noqa: F401


def model():
    torch.manual_seed(3)
    return torch.nn.Sequential(
        torch.nn.Linear(32, 64), torch.nn.BatchNorm1d(64), torch.nn.ReLU(),
        *[torch.nn.Linear(64, 64) for _ in range(8)], torch.nn.Linear(64, 4),
    )  # fmt: skip


def train(group, steps=6, hook=None, zero=False, uneven=False, **options):
    """Trains a model, and returns its parameters."""
    rank = dist.get_rank()
    ddp = DistributedDataParallel(model(), process_group=group, bucket_cap_mb=0.02, **options)
    if hook:
        ddp.register_comm_hook(group, hook)
    kind = {"optimizer_class": torch.optim.SGD, "process_group": group} if zero else {}
    optimizer = (ZeroRedundancyOptimizer if zero else torch.optim.SGD)(ddp.parameters(), lr=0.1, **kind)
    torch.manual_seed(rank)

    def loop():
        for step in range(steps + (rank if uneven else 0)):
            optimizer.zero_grad()
            out = ddp(torch.randn(8, 32))
            if step == 2 and not uneven:
                with ddp.no_sync():
                    out.square().mean().backward()
                out = ddp(torch.randn(8, 32))
            out.square().mean().backward()
            optimizer.step()

    if uneven:
        with ddp.join():
            loop()
    else:
        loop()
    return [p.detach().clone() for p in ddp.module.parameters()]


def embedding(group):
    """A model whose gradient is sparse."""
    torch.manual_seed(1)
    ddp = DistributedDataParallel(torch.nn.EmbeddingBag(20, 4, mode="sum", sparse=True), process_group=group)
    ddp(torch.tensor([[dist.get_rank(), 7]])).sum().backward()
    return [ddp.module.weight.grad.to_dense()]


def nested(group):
    """What waits for a future makes a call, and waits for its future: a hook of torch's does, in which gloo hangs."""
    ddp = DistributedDataParallel(model(), process_group=group)  # one bucket: the calls of two would be in any order
    ddp.register_comm_hook(powerSGD_hook.PowerSGDState(group, start_powerSGD_iter=2), powerSGD_hook.powerSGD_hook)
    for _ in range(4):
        ddp(torch.randn(8, 32)).square().mean().backward()
    for p in ddp.parameters():
        others = p.grad.clone()
        dist.broadcast(others, 0, group=group)
        assert torch.equal(others, p.grad)


def dies(group):
    """A rank that ends within backward is named by the error of the others."""
    ddp = DistributedDataParallel(model(), process_group=group)
    loss = ddp(torch.randn(8, 32)).sum()
    if dist.get_rank() == 1:
        os._exit(7)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # gorun ends the others
    try:
        for _ in range(100):
            loss.backward(retain_graph=True)
    except RuntimeError as e:
        assert "rank 1" in str(e), e
        print("all of it", flush=True)
        os._exit(7)


def main():
    dist.init_process_group("gorun")
    ours, gloos = dist.group.WORLD, dist.new_group(backend="gloo")
    if len(sys.argv) > 2:
        dies(ours)
    cases = [
        {}, {"gradient_as_bucket_view": True}, {"zero": True}, {"find_unused_parameters": True}, {"broadcast_buffers": False},
    ]  # fmt: skip
    for case in cases:
        for a, b in zip(train(ours, **case), train(gloos, **case)):
            assert torch.allclose(a, b, rtol=0, atol=0 if dist.get_world_size() == 2 else 1e-5), (case, (a - b).abs().max())
    for a, b in zip(train(ours, hook=default_hooks.fp16_compress_hook), train(ours)):
        assert torch.allclose(a, b, atol=1e-2), (a - b).abs().max()
    train(ours, uneven=True, broadcast_buffers=False)
    for a, b in zip(embedding(ours), embedding(gloos)):
        assert torch.equal(a, b), (a, b)
    nested(ours)
    print("torch %s: all of it" % torch.__version__)  # and it ends without destroy_process_group


main()

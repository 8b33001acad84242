"""A worker as torch.distributed's users write it: nothing in it knows of gorun.

FAIL_RANK=R: rank R dies in the first attempt, in the middle of the training.
"""
import os

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record
from torch.nn.parallel import DistributedDataParallel


@record
def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])

    total = torch.full((5,), float(rank + 1))
    dist.all_reduce(total)
    assert total.tolist() == [world * (world + 1) / 2] * 5, total

    objects = [{"attempt": attempt}, "text"] if rank == 0 else [None, None]
    dist.broadcast_object_list(objects, src=0)
    assert objects == [{"attempt": attempt}, "text"], objects

    torch.manual_seed(rank)  # different everywhere: DDP takes rank 0's
    model = DistributedDataParallel(torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for step in range(30):
        if step == 10 and attempt == 0 and os.environ.get("FAIL_RANK") == str(rank):
            raise RuntimeError(f"rank {rank} fails on purpose")
        x = torch.randn(64, 8)
        loss = ((model(x) - x.sum(1, keepdim=True)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2, losses

    mine = torch.cat([p.detach().flatten() for p in model.parameters()])
    everyone = [torch.empty_like(mine) for _ in range(world)]
    dist.all_gather(everyone, mine)
    assert all(torch.equal(mine, other) for other in everyone), everyone

    dist.barrier()
    dist.destroy_process_group()
    print(f"rank {rank} of {world} trained in attempt {attempt}", flush=True)


main()

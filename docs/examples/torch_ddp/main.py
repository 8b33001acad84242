"""Data-parallel training with backend gorun. Only the first two lines differ from a program for gloo.

    gorun --nproc-per-node=2 docs/examples/torch_ddp/main.py
"""

import gorun.torch  # noqa: F401  not needed from torch 2.5 on, if the wheel is installed

BACKEND = "gorun"

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402


def main():
    dist.init_process_group(BACKEND)
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    x = torch.linspace(-1, 1, 64).view(-1, 1)
    y = 3 * x + 1
    model = DistributedDataParallel(torch.nn.Linear(1, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    for _ in range(100):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x[rank::size]), y[rank::size])
        loss.backward()  # DDP averages the gradients meanwhile
        optimizer.step()
    weight, bias = (p.item() for p in model.parameters())
    print(f"rank {rank} has learned y = {weight:.2f} x + {bias:.2f}")
    dist.destroy_process_group()


main()

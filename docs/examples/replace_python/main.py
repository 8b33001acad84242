"""A model in memory outlives the failure of a worker.

    gorun --nproc-per-node=3 --max-restarts=2 --on-failure=replace docs/examples/replace_python/main.py
"""

import os
import signal

import torch
import torch.distributed as dist

from rounds import Rounds

STEPS = 20


class RoundOver(RuntimeError):
    """The agent has said so, and no call has failed."""


def main():
    rounds = Rounds()
    model, step = torch.zeros(4), 0
    while True:
        try:
            dist.init_process_group("gloo")
            # Whoever is new gets the model from the rank that has come furthest.
            steps = [None] * dist.get_world_size()
            dist.all_gather_object(steps, step)
            best = steps.index(max(steps))
            state = [(model, step)]
            dist.broadcast_object_list(state, src=best)
            model, step = state[0]
            print(f"rank {dist.get_rank()} goes on at step {step}", flush=True)
            while step < STEPS:
                if step == 10 and dist.get_rank() == 1 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
                    os.kill(os.getpid(), signal.SIGKILL)  # an accident
                if rounds.is_over():
                    raise RoundOver
                gradient = torch.ones(4)
                dist.all_reduce(gradient)
                model, step = model + gradient, step + 1
            dist.barrier()
            print(f"rank {dist.get_rank()}: {model[0].item():.0f} after {step} steps", flush=True)
            dist.destroy_process_group()
            return
        except RuntimeError as error:  # another worker has died or left, or nodes come or go
            if dist.is_initialized():
                dist.destroy_process_group()
            for d in rounds.enter(why=repr(error)):
                print(f"rank {os.environ['RANK']} lives on: rank {d['rank']} died: {d['reason']}", flush=True)


main()

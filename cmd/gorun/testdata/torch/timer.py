"""A worker that sets timers, as torch.distributed.elastic's users do: rank 1 hangs in the first attempt."""
import os
import time

import torch.distributed.elastic.timer as timer

timer.configure(timer.FileTimerClient(os.environ["TORCHELASTIC_TIMER_FILE"]))
rank, attempt = os.environ["RANK"], os.environ["TORCHELASTIC_RESTART_COUNT"]

with timer.expires(after=600, scope="setup"):
    pass
with timer.expires(after=1 if (rank, attempt) == ("1", "0") else 600, scope="step"):
    while rank == "1" and attempt == "0":
        time.sleep(600)
print(f"rank {rank} is through in attempt {attempt}", flush=True)

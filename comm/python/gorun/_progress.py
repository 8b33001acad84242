"""Progress, by which gorun --hang-timeout finds a worker that hangs. It does not need the library."""

import os
from typing import Optional


def progress(step: Optional[int] = None) -> None:
    """Says that this worker makes progress. gorun compares steps, if they are given, to find workers that are slow.

    Call it before and after what takes long, on every rank: with gloo or NCCL, before backward and after the optimizer's
    step. The calls of gorun are progress by themselves. Without gorun --hang-timeout it does nothing.
    """
    path = os.environ.get("GORUN_PROGRESS_FILE")
    if not path:
        return
    if step is None:
        with open(path, "ab"):
            os.utime(path)
    else:
        with open(path, "w") as f:
            f.write(str(step))

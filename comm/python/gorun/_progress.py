"""Progress, by which gorun --hang-timeout finds a worker that hangs. It does not need the library."""

import os
from typing import IO, Optional

_stacks: Optional[IO[str]] = None  # where the stacks are written on a signal of gorun's


def progress(step: Optional[int] = None) -> None:
    """Says that this worker makes progress. gorun compares steps, if they are given, to find workers that are slow.

    Call it before and after what takes long, on every rank: with gloo or NCCL, before backward and after the optimizer's
    step. The calls of gorun are progress by themselves. Without gorun --hang-timeout it does nothing.
    """
    path = os.environ.get("GORUN_PROGRESS_FILE")
    if not path:
        return
    show_stacks()
    if step is None:
        with open(path, "ab"):
            os.utime(path)
    else:
        with open(path, "w") as f:
            f.write(str(step))


def show_stacks() -> None:
    """Lets gorun --hang-timeout see the stacks of Python: faulthandler writes them on a signal."""
    global _stacks
    path = os.environ.get("GORUN_PROGRESS_FILE", "") + ".stacks"
    if path == ".stacks" or _stacks is not None and _stacks.name == path:
        return
    import faulthandler
    import signal

    if hasattr(signal, "SIGRTMAX"):
        try:
            _stacks = open(path, "a")
        except OSError:
            return  # then they are not seen
        faulthandler.register(signal.SIGRTMAX - 1, _stacks)

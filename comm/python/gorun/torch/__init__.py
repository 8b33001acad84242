"""The backend "gorun" of torch.distributed, for tensors on CPUs.

>>> import torch.distributed as dist
>>> import gorun.torch  # needed before torch 2.5; later ones find the backend by themselves, if the wheel is installed
>>> dist.init_process_group("gorun")

Start the program with gorun --nproc-per-node 4 train.py.
"""

import inspect
from typing import Any

import torch.distributed as dist


def _create(options: Any, _: Any = None) -> Any:
    from ._group import create  # which needs the C library

    return create(options)


def _rendezvous(url: str, timeout: Any = None, **_: Any) -> Any:
    """The init_method gorun://: ranks join the world first, and rank 0 tells the others there where torch's store is.

    So survivors of a failure can meet again, after gorun.rejoin, and nobody has to choose a port.
    """
    from ._meet import rendezvous

    yield rendezvous(timeout)
    raise RuntimeError("gorun: torch cannot meet again in the same process group: use gorun.rejoin")


def _register() -> None:
    if not dist.is_available() or hasattr(dist.Backend, "GORUN"):
        return
    from torch.distributed.rendezvous import register_rendezvous_handler

    more = {}
    if "devices" in inspect.signature(dist.Backend.register_backend).parameters:
        more["devices"] = ["cpu"]
    dist.Backend.register_backend("gorun", _create, extended_api=True, **more)
    register_rendezvous_handler("gorun", _rendezvous)


_register()

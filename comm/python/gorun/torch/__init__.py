"""The backend "gorun" of torch.distributed, for tensors on CPUs.

>>> import torch.distributed as dist
>>> import gorun.torch  # needed before torch 2.5; later ones find the backend by themselves, if the wheel is installed
>>> dist.init_process_group("gorun")

Start the program with gorun --nproc-per-node 4 train.py.
"""

import functools
import inspect
import sys
from typing import Any

import torch
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
    _allow_monitored_barrier()
    _name_sources()
    _meet_in_the_world()


def _meet_in_the_world() -> None:
    """Replaces the barrier with which torch before 2.1 ends init_process_group and new_group.

    torch's barrier waits in a store, even if the world has failed. So ranks that have met by gorun:// wait in their world instead.
    """
    module = dist.distributed_c10d
    theirs = getattr(module, "_store_based_barrier", None)
    if theirs is None or list(inspect.signature(theirs).parameters) != ["rank", "store", "timeout"]:
        return  # there is none, or only the members of a group call it

    @functools.wraps(theirs)
    def store_based_barrier(*args: Any, **keywords: Any) -> None:
        from ._meet import barrier

        if not barrier():
            theirs(*args, **keywords)

    module._store_based_barrier = store_based_barrier


def _backend(group: Any, device: Any = "cpu") -> Any:
    """Returns what carries out a group's calls for tensors of a device, if that is gorun, or None."""
    module = sys.modules.get(__name__ + "._group")
    if module is None:
        return None  # there is no group of gorun
    own = dist.distributed_c10d._get_default_group() if group is None else group
    if isinstance(own, module.Group):
        return own  # no Backend can be derived from in this torch, so a group carries out its calls itself
    try:
        own = own._get_backend(torch.device(device))
    except (AttributeError, RuntimeError):
        return None  # it has none for this device
    return own if isinstance(own, module.Group) else None


def _allow_monitored_barrier() -> None:
    """Makes dist.monitored_barrier take groups of gorun. Before torch 2.13, it takes those of gloo only."""
    theirs = dist.monitored_barrier

    @functools.wraps(theirs)
    def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> Any:
        backend = _backend(group)
        if backend is None:
            return theirs(group, timeout, wait_all_ranks)
        return backend.monitored_barrier(timeout, wait_all_ranks)

    if "GLOO" in inspect.unwrap(theirs).__code__.co_names:
        dist.monitored_barrier = dist.distributed_c10d.monitored_barrier = monitored_barrier


def _name_sources() -> None:
    """Makes dist.recv without src return who has sent the message. From torch 2.13 on, it asks a Work in C++, which does not know."""
    theirs = dist.recv

    @functools.wraps(theirs)
    def recv(tensor: Any, src: Any = None, group: Any = None, tag: int = 0, group_src: Any = None) -> Any:
        anybody = src is None and group_src is None and isinstance(tensor, torch.Tensor)
        backend = _backend(group, tensor.device) if anybody else None
        if backend is None:
            return theirs(tensor, src, group, tag, group_src)
        work = backend.recv_anysource([torch.view_as_real(tensor) if tensor.is_complex() else tensor], tag)
        work.wait()
        return dist.get_global_rank(dist.distributed_c10d._get_default_group() if group is None else group, work.source_rank())

    if tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 13):
        dist.recv = dist.distributed_c10d.recv = recv


_register()

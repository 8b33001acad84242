"""Process groups: torch's calls as gorun's."""

import atexit
import datetime
import weakref
from typing import Any

import torch
import torch.distributed as dist

from . import _composed, _meet
from ._collectives import Collectives
from ._work import Listener


def _base() -> Any:
    """Backend, where a class in Python can be one (torch 2.13 and newer), or else ProcessGroup."""
    backend = getattr(torch._C._distributed_c10d, "Backend", None)
    try:
        type("Probe", (backend,), {})(0, 1)  # type: ignore[arg-type]
        return backend
    except (TypeError, RuntimeError):
        return dist.ProcessGroup


_Base: Any = _base()


class Group(Collectives, _Base):  # type: ignore[misc]
    """The process group, or its backend for CPU tensors."""

    _in_python = _Base is dist.ProcessGroup

    def __init__(self, options: Any) -> None:
        rank, size, listener = options.group_rank, options.group_size, Listener()
        _Base.__init__(self, rank, size)
        Collectives.__init__(self, _meet.join(options, listener), listener, rank, size)
        self._name, self._desc = options.group_id, "undefined"
        weakref.finalize(self, self._member.close).atexit = False

    def monitored_barrier(self, timeout: Any = None, wait_all_ranks: bool = False) -> None:
        timeout = getattr(timeout, "timeout", timeout)  # of options, from torch 2.13 on
        seconds = -1.0 if timeout is None else timeout.total_seconds() if isinstance(timeout, datetime.timedelta) else float(timeout)
        seconds = seconds if seconds >= 0 else self._member.seconds
        _composed.monitored_barrier(self._member.group, seconds, wait_all_ranks)

    def _set_sequence_number_for_group(self) -> None:
        """There is nothing to agree on: all ranks count from 0."""

    def _get_sequence_number_for_group(self) -> int:
        return self._seq

    def getBackendName(self) -> str:  # as C++ calls it
        return "gorun"

    def name(self) -> str:
        return "gorun"

    def shutdown(self) -> None:
        self._member.close()

    def abort(self) -> None:
        self._member.group.abort("torch has aborted the process group")


for _name, _value in vars(_Base).items():
    if _name.startswith("supports_") and isinstance(_value, property):
        setattr(Group, _name, False)  # Backend's own would ask the subclass, and so itself

if Group._in_python:
    # With a backend, torch keeps the name. It reads and sets it in one way or the other.
    Group.group_name = property(lambda self: self._name)
    Group.group_desc = property(lambda self: self._desc)
    Group._set_group_name = lambda self, name: setattr(self, "_name", name)
    Group._set_group_desc = lambda self, text: setattr(self, "_desc", text)
    Group.getGroupName = lambda self: self._name
    Group.setGroupName = Group._set_group_name
    Group.getGroupDesc = lambda self: self._desc
    Group.setGroupDesc = Group._set_group_desc


def create(options: Any) -> Group:
    return Group(options)


atexit.register(_meet.close_all)

"""How the ranks of a process group meet, and which group of gorun's they are.

The default group is a world: one that the program has joined already, or under gorun that of the round, or else one whose ranks
meet in torch's store. Its groups are made by their members alone.
"""

import ctypes
import datetime
import json
import os
import secrets
import threading
import time
import weakref
from ctypes import byref, c_int, c_uint64
from typing import Any, List, Optional, Tuple

import torch.distributed as dist

import gorun

from .._errors import MISSING_KEYS, OTHER, ArgumentError, ClosedError, Error, MissingRanksError
from .._group import Group
from .._library import library
from .._progress import show_stacks
from .._types import OpenFunction, Options, StoreFunctions

_NONE = b"\0"  # no key has this value


def _value(store: Any, key: str, seconds: float) -> Optional[bytes]:
    """Returns what a key has, or None if nobody sets it in time.

    A get of torch's cannot be ended, and keeps others of the same store waiting.
    """
    deadline, delay = time.monotonic() + seconds, 0.001
    while True:
        value = store.compare_set(key, "\0", "\0")
        if value != _NONE:
            return bytes(value)
        left = deadline - time.monotonic()
        if left <= 0:
            return None
        time.sleep(min(delay, left))
        delay = min(2 * delay, 0.02)


class _Store:
    """A store of torch as one of gorun's."""

    def __init__(self, store: Any) -> None:
        self._store, self.error = store, None  # type: Any, Optional[BaseException]
        kinds = dict(StoreFunctions._fields_)
        names = ("set", "get", "add", "compare_and_swap", "delete_key")
        self._functions = StoreFunctions(None, *[kinds[name](self._safe(getattr(self, "_" + name))) for name in names])
        self._open, self._opened = OpenFunction(self._safe(self._open_once)), False

    def join(self, seconds: float, rank: int = 0, size: int = 0, token: Optional[bytes] = None) -> Group:
        """Joins a world of so many ranks, or else that of gorun's round. They meet in the store."""
        library().watch_signals()
        show_stacks()
        world, handle = c_uint64(), c_uint64()
        try:
            if size:
                self._make(byref(handle))
                library().init(byref(Options(None, rank, size, handle.value, None, token, seconds)), byref(world))
            else:
                library().init_round_store(byref(Options(timeout=seconds)), self._open, None, byref(world))
        except Error as e:
            raise e from self.error
        finally:
            if handle.value:
                library().store_close(handle)
        return Group(world.value)

    def _make(self, handle: Any) -> None:
        library().store_custom(byref(self._functions), handle)

    def _open_once(self, handle: Any) -> None:
        if self._opened:
            raise Error("gorun: rejoin: the store of the last round has ended: use init_method='gorun://' of init_process_group")
        self._make(handle)
        self._opened = True

    def _safe(self, function: Any) -> Any:
        def call(_: Any, first: Any, *args: Any) -> int:
            try:
                return int(function(first.decode() if isinstance(first, bytes) else first, *args) or 0)  # a key, as a rule
            except BaseException as e:  # C cannot raise it
                self.error = e
                return OTHER

        return call

    def _set(self, key: str, value: int, length: int) -> None:
        self._store.set(key, ctypes.string_at(value, length))

    def _get(self, key: str, seconds: float, to: int, room: int, length: Any) -> int:
        value = _value(self._store, key, seconds)
        if value is None:
            return MISSING_KEYS
        length[0] = len(value)
        ctypes.memmove(to, value, min(room, len(value)))
        return 0

    def _add(self, key: str, amount: int, total: Any) -> None:
        total[0] = self._store.add(key, amount)

    def _compare_and_swap(self, key: str, old: int, old_length: int, value: int, length: int, to: int, room: int, now: Any) -> None:
        before, after = ctypes.string_at(old or 0, old_length) if old_length else b"", ctypes.string_at(value, length) if length else b""
        found = bytes(self._store.compare_set(key, before, after))
        now[0] = len(found)
        ctypes.memmove(to, found, min(room, len(found)))

    def _delete_key(self, key: str, was_set: Any) -> None:
        was_set[0] = int(self._store.delete_key(key))


class Member:
    """This process in a group, and how long one call on it may take. close leaves it, and ends what listens to it."""

    _open: "List[weakref.ref[Member]]" = []

    def __init__(self, group: Group, seconds: float, inherited: float, listener: Any, owned: bool = True) -> None:
        self.group, self.listener, self._owned = group, listener, owned
        self.seconds, self.limit = seconds, seconds if seconds != inherited else -1.0
        self._lock = threading.Lock()
        Member._open[:] = [ref for ref in Member._open if ref() is not None] + [weakref.ref(self)]

    def close(self) -> None:
        with self._lock:
            group, self._owned = self.group if self._owned else None, False
        if group is not None:
            try:
                group.close()
            except Error:
                pass  # its world has been closed
        self.listener.end()


def close_all() -> None:
    """Leaves all groups: at exit, no thread may be in C any more."""
    for ref in reversed(Member._open):
        member = ref()
        if member is not None:
            member.close()
    Member._open.clear()


_meeting: Optional[_Store] = None  # of the world of a round, which opens it to rejoin
_default: "Optional[weakref.ref[Member]]" = None
_worlds = 0  # default groups that this process has made


def join(options: Any, listener: Any) -> Member:
    """Joins the group of torch's options."""
    global _default, _worlds
    seconds, ranks = options.timeout.total_seconds(), list(options.global_ranks_in_group)
    parent = _default() if _default is not None else None
    if ranks and parent is not None:
        name = "torch/%d/%s" % (_worlds, options.group_id)
        return Member(parent.group.group(ranks, name), seconds, parent.seconds, listener)
    if not ranks:
        close_all()  # those that somebody still has: torch has no group any more
    found, owned = _world(options, seconds, is_default=not ranks)
    member = Member(found, seconds, seconds, listener, owned)
    if not ranks:
        _default, _worlds = weakref.ref(member), _worlds + 1
    return member


def _world(options: Any, seconds: float, is_default: bool) -> Tuple[Group, bool]:
    """Returns the world of a group's ranks, and whether it ends with the group."""
    global _met
    store, rank, size = options.store, options.group_rank, options.group_size
    if is_default and _met is not None:
        (found, owned), _met = _met, None
        if (found.rank, found.size) != (rank, size):
            why = "gorun: init_process_group: rank %d of %d: it is %d of %d in the world"
            raise ArgumentError(why % (rank, size, found.rank, found.size))
        return found, owned
    if rank == 0:
        of_round = is_default and "GORUN_ROUND" in os.environ and os.environ.get("WORLD_SIZE") == str(size)
        token = None if os.environ.get("GORUN_TOKEN") else secrets.token_hex(16)
        store.set("gorun", json.dumps({"of_round": of_round, "token": token}))
    text = _value(store, "gorun", seconds)
    if text is None:
        raise MissingRanksError("gorun: init_process_group: rank 0 has not come in %gs: Timed out" % seconds)
    how = json.loads(text)
    if how["of_round"]:
        if os.environ.get("RANK") != str(rank):
            raise ArgumentError("gorun: init_process_group: rank is %d, and RANK %s: want the same" % (rank, os.environ.get("RANK")))
        return _round_world(seconds, store)
    token = how["token"].encode() if how["token"] else None
    return _Store(store).join(seconds, rank, size, token), True


def _round_world(seconds: float, store: Any = None) -> Tuple[Group, bool]:
    """Returns the world that the program has joined by gorun.init or gorun.rejoin, if it is still open, or joins it.

    If the agent has no store for its ranks, MASTER_PORT is that of torch's store: they meet there.
    """
    global _meeting
    if gorun._world is not None:
        try:
            library().rank(gorun._world._handle, byref(c_int()))
            return gorun._world, False
        except ClosedError:
            pass
    if store is not None and not os.environ.get("GORUN_STORE_ADDR"):
        _meeting = _Store(store)
        return _meeting.join(seconds), True
    world = gorun.init(timeout=seconds)
    gorun._world = None  # it is not the program's
    return world, True


_met: Optional[Tuple[Group, bool]] = None  # the world of rendezvous, for the default group that follows
_joined: "Optional[weakref.ref[Group]]" = None  # the world of the last rendezvous, also after that

_CONNECT = datetime.timedelta(seconds=10)  # rank 0 has a store by then, or has gone


def barrier() -> bool:
    """Waits for all ranks of the world of the last rendezvous, and reports whether there is one that is still open."""
    world = _joined() if _joined is not None else None
    try:
        if world is not None:
            world.barrier()
    except ClosedError:
        return False
    return world is not None


def rendezvous(timeout: Any) -> Tuple[Any, int, int]:
    """Returns a store of torch for the ranks of the world, this rank, and how many there are."""
    global _met, _joined
    close_all()
    _met = world, _ = _round_world(timeout.total_seconds() if timeout else 0)
    _joined = weakref.ref(world)
    more: Any = {}
    if "use_libuv" in (dist.TCPStore.__init__.__doc__ or ""):
        more["use_libuv"] = False  # which not every build has
    host = os.environ.get("MASTER_ADDR", "127.0.0.1")
    if world.rank == 0:
        store = dist.TCPStore(host, 0, None, True, wait_for_workers=False, timeout=_CONNECT, **more)
        world.broadcast_object(store.port)
    else:
        port = world.broadcast_object()
        try:
            store = dist.TCPStore(host, port, None, False, wait_for_workers=False, timeout=_CONNECT, **more)
        except RuntimeError:
            world.iprobe()  # raises what the world has failed with, if that is why
            raise
    store.set_timeout(timeout or datetime.timedelta(minutes=5))
    return store, world.rank, world.size

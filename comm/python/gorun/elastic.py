"""Keeps the state of a training job through the death of ranks, under gorun --on-failure=replace.

>>> state = gorun.elastic.State(model=model, optimizer=optimizer, step=0)
>>> def train(state):
...     dist.init_process_group("gorun", init_method="gorun://")
...     ddp = DistributedDataParallel(model)
...     while state.step < 1000:
...         train_one_step(ddp, optimizer)
...         state.step += 1
...         state.commit()
>>> gorun.elastic.run(train, state)

The state has the same contents on all ranks, but for its Parts. commit takes a copy of it in memory. When a rank dies, run calls the
function again on all ranks, those that live and the new one, in the next world: with the newest commit, which new ranks receive
from those that have it. So what is lost is the step that was under way. Package comm/elastic of Go says more.
"""

import contextlib
import gc
import itertools
import sys
import threading
import time
import traceback
from typing import Any, Callable, Dict, Iterator, List, Optional, TypeVar

import gorun

from ._checkpoint import Checkpoints
from ._errors import AbortError, ArgumentError, Error, MissingRanksError, NoRejoinError, PeerError, RoundOverError
from ._group import Group
from ._variables import Variable, assignable, flatten, layout, load, restore
from ._work import _kept as _under_way

__all__ = ["Part", "State", "load", "run"]

T = TypeVar("T")
_GONE = (PeerError, MissingRanksError, RoundOverError)  # a world fails with one of these if ranks have gone, or come
_NOTICE = 5.0  # seconds after the failure of another library's call in which gorun learns why
_SHARED = ""  # the name of what all ranks have, among those of Parts
_runs = itertools.count(1)


class Part:
    """A variable of a State that belongs to one rank, such as its shard of a model. Its name is that of no other rank's Part.

    After each commit its contents are sent to another rank, on another node if there is one. A rank that is started again gets
    them from there, if its State has a Part of this name. A job with Parts keeps its number of ranks.
    """

    def __init__(self, name: str, value: Any) -> None:
        if not isinstance(name, str) or not name:
            raise ArgumentError("gorun.elastic: a Part needs a name, such as Part('shard %d' % rank, shard)")
        self.name, self.value = name, value


class State:
    """Variables that have the same contents on all ranks, and Parts, which belong to one rank, with a copy of them: the last commit.

    A variable is anything with state_dict and load_state_dict, an array of numpy, a tensor of torch, or a plain value: None, bool, int,
    float, str, bytes, a scalar of numpy, and lists, tuples and dicts of all these. All that can be is set in place, so the program may have
    other names for it. Arrays and tensors that are variables keep their shape and type. Variables are attributes of the state.

    A State of Go in the same job fits if it has the same names: a Slice is an array of one dimension, and a Value a plain value.
    """

    def __init__(self, **variables: Any) -> None:
        if not variables:
            raise ArgumentError("gorun.elastic: a State needs variables, such as State(model=model, step=0)")
        parts: Dict[str, List[str]] = {_SHARED: []}  # the names of the variables in each
        for name in sorted(variables):
            value = variables[name]
            if name in ("commit", "restore", "world") or name.startswith("_"):
                raise ArgumentError("gorun.elastic: %s cannot be the name of a variable" % name)
            of = value.name if isinstance(value, Part) else _SHARED
            if of in parts and of != _SHARED:
                raise ArgumentError("gorun.elastic: two Parts have the name %r" % of)
            parts.setdefault(of, []).append(name)
            if of != _SHARED:
                variables[name] = value.value
        self.__dict__.update(_variables=variables, _parts=parts, _world=None, _checkpoints=None, _copying=threading.Lock(), _running=threading.Lock())
        self._forget()
        for name, value in variables.items():
            flatten(name, value)  # it is better to learn now what cannot be kept than when a rank has died

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_variables"][name]
        except KeyError:
            raise AttributeError("the State has no variable %r" % name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._variables:
            raise AttributeError("the State has no variable %r: name it when you make the State" % name)
        if not assignable(self._variables[name], value):
            raise ArgumentError("gorun.elastic: %s is set in place: assign to its contents" % name)
        self._variables[name] = value

    @property
    def world(self) -> Group:
        """The world in which the function runs."""
        if self._world is None:
            raise ArgumentError("gorun.elastic: the State has a world only while run calls the function")
        world: Group = self._world
        return world

    def commit(self) -> None:
        """Makes the present contents of the variables the last commit. All ranks call it at the same point of the program.

        Without Parts it sends nothing. Parts are sent after it has returned, and the next commit waits until they have arrived.
        """
        if self._world is not None:
            self._world.iprobe()  # raises what the world has failed with: then a step may be half done
        if _under_way:
            raise ArgumentError("gorun.elastic: commit: %d calls are under way: wait for their Work first" % len(_under_way))
        with self._copy("commit"):
            self._checkpoints.commit(self._contents(*self._parts))

    def restore(self) -> None:
        """Sets the variables to the last commit."""
        with self._copy("restore"):
            self._restore()

    @contextlib.contextmanager
    def _copy(self, call: str) -> Iterator[None]:
        """Holds the lock of all that copies, for a call of the program."""
        with _alone(self._copying, "%s: a commit or restore of this State" % call):
            if self._world is None and self._running.locked():  # this is another thread: run has the variables now
                raise ArgumentError("gorun.elastic: %s: the function of run has returned" % call)
            yield

    def _restore(self) -> None:
        for part, names in self._parts.items():
            entries = self._checkpoints.entries(part, len(names))
            if entries is None:
                raise ArgumentError("gorun.elastic: restore: there is no commit")
            for name, (tree, memory) in zip(names, entries):
                self._variables[name] = restore(name, self._variables[name], tree, memory)

    def _contents(self, *parts: str) -> Dict[str, List[Variable]]:
        return {part: [flatten(name, self._variables[name]) for name in self._parts[part]] for part in parts}

    def _forget(self) -> None:
        self.__dict__["_checkpoints"] = Checkpoints([part for part in self._parts if part != _SHARED])
        self.__dict__["_begun"] = False

    def _sync(self, world: Group, number: int) -> None:
        """Brings all ranks of a world to the newest commit that is whole. number says which run of the program it is, from 1."""
        with self._copying:
            if not self._begun:
                self._checkpoints.take(self._contents(*[part for part in self._parts if part != _SHARED or world.rank == 0]))
            self._checkpoints.sync(world, number, [(name, *layout(self._variables[name])) for name in self._parts[_SHARED]])
            self.__dict__["_begun"] = True
            try:
                self._restore()
            except Exception as e:
                world.abort("it cannot take over the state of the others: %s" % e)
                raise


def run(function: Callable[[State], T], state: State, **options: Any) -> T:
    """Calls function(state) in a world of all ranks, and again in the next world whenever ranks have died, left or come.

    Before each call, the variables of all ranks have the contents of the newest commit; before the first, those that they have on one
    rank. The function makes its process groups and wrappers anew, and returns when the work is done, on all ranks. Options are those of
    gorun.init. Where workers do not outlive a failure, it is called once, and its error is raised.

    The default process group of torch is destroyed after each call, whatever its backend. In a new world init_method="gorun://" serves
    every backend.
    """
    with _alone(state._running, "run: another run of this State"):
        with _alone(state._copying, "run: a commit or restore of this State"):
            state._forget()
        return _run(function, state, **options)


def _run(function: Callable[[State], T], state: State, **options: Any) -> T:
    world, failure = None, None
    number = next(_runs)
    try:
        while True:
            try:
                world = gorun.init(**options) if failure is None else gorun.rejoin()
                return _in_world(function, state, world, number)
            except NoRejoinError as e:
                raise failure or e
            except Exception as e:
                if not _changed(e, world):
                    raise
                failure = e
                traceback.clear_frames(e.__traceback__)  # which have the wrappers of the model, as large as it
            gc.collect()
    finally:
        if world is not None:
            world.close()


@contextlib.contextmanager
def _alone(lock: threading.Lock, what: str) -> Iterator[None]:
    """Holds a lock. A second thread, or a signal handler, gets an error: it would use memory that the first one is writing to, or has freed."""
    if not lock.acquire(blocking=False):
        raise ArgumentError("gorun.elastic: %s is under way" % what)
    try:
        yield
    finally:
        lock.release()


def _in_world(function: Callable[[State], T], state: State, world: Group, number: int) -> T:
    state._sync(world, number)
    state.__dict__["_world"] = world
    try:
        result = function(state)
    finally:
        state.__dict__["_world"] = None
        _destroy_process_groups()
    state._checkpoints.wait()  # it needs the world, which is closed when all have returned
    # As long as what a rank in Go sends. A rank that is still in function makes another call, which is an error there and here.
    returned = b"f has returned nil"
    world.all_gather(returned, bytearray(len(returned) * world.size))
    return result


def _changed(error: BaseException, world: Optional[Group]) -> bool:
    """Reports whether an error means that the world has changed. Other libraries learn of a death by themselves, and before gorun."""
    if isinstance(error, _GONE) or isinstance(error, AbortError) and (world is None or error.rank != world.rank):
        return True
    if world is None or isinstance(error, Error) or not isinstance(error, (RuntimeError, OSError)):
        return False
    until = time.monotonic() + _NOTICE
    while time.monotonic() < until:
        try:
            world.iprobe()
        except _GONE:
            return True
        except Error:
            return False
        time.sleep(0.002)
    return False


def _destroy_process_groups() -> None:
    dist = sys.modules.get("torch.distributed")
    if dist is not None and dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()

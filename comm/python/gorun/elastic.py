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

The state has the same contents on all ranks. commit takes a copy of it in memory, and sends nothing. When a rank dies, run calls the
function again on all ranks, those that live and the new one, in the next world: with the newest commit that any of them has, which the
others receive from those that have it. So what is lost is the step that was under way.
"""

import gc
import os
import sys
import time
import traceback
from typing import Any, Callable, List, Optional, TypeVar

import gorun

from ._elastic import Snapshot, same_kind
from ._errors import AbortError, ArgumentError, Error, MismatchError, MissingRanksError, NoRejoinError, PeerError, RoundOverError
from ._group import Group
from ._work import _kept as _under_way

__all__ = ["State", "run"]

T = TypeVar("T")
_GONE = (PeerError, MissingRanksError, RoundOverError)  # a world fails with one of these if ranks have gone, or come
_NOTICE = 5.0  # seconds after the failure of another library's call in which gorun learns why
_SOURCES = 4  # ranks from which another receives at the same time
_TAG = 1


class State:
    """Variables that have the same contents on all ranks, with a copy of them: the last commit.

    A variable is anything with state_dict and load_state_dict, an array of numpy, a tensor of torch, or a plain value: None, bool, int,
    float, str, bytes, a scalar of numpy, and lists, tuples and dicts of all these. All that can be is set in place, so the program may have
    other names for it. Arrays and tensors that are variables keep their shape and type. Variables are attributes of the state.
    """

    def __init__(self, **variables: Any) -> None:
        if not variables:
            raise ArgumentError("gorun.elastic: a State needs variables, such as State(model=model, step=0)")
        names = sorted(variables)
        for name in names:
            if name in ("commit", "restore", "world") or name.startswith("_"):
                raise ArgumentError("gorun.elastic: %s cannot be the name of a variable" % name)
        self.__dict__.update(  # _id: the round of the last commit, and its number, which tell which commit is newer
            _variables={name: variables[name] for name in names}, _id=(0, 0), _commit=Snapshot(), _world=None
        )
        trial = Snapshot()  # it is better to learn now what cannot be kept than when a rank has died
        trial.take(self._variables)
        trial.parts(1)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_variables"][name]
        except KeyError:
            raise AttributeError("the State has no variable %r" % name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._variables:
            raise AttributeError("the State has no variable %r: name it when you make the State" % name)
        if not same_kind(self._variables[name], value):
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
        """Makes the present contents of the variables the last commit. All ranks call it at the same point of the program."""
        if self._world is not None:
            self._world.iprobe()  # raises what the world has failed with: then a step may be half done
        if _under_way:
            raise ArgumentError("gorun.elastic: commit: %d calls are under way: wait for their Work first" % len(_under_way))
        self._commit.take(self._variables)
        self.__dict__["_id"] = (self._id[0], self._id[1] + 1)

    def restore(self) -> None:
        """Sets the variables to the last commit."""
        if not self._commit.whole:
            raise ArgumentError("gorun.elastic: restore: there is no commit")
        self._variables.update(self._commit.restore(self._variables))

    def _sync(self, world: Group) -> None:
        """Brings all ranks of a world to the newest commit of any of them."""
        names = world.all_gather_object(list(self._variables))
        for rank, others in enumerate(names):
            if others != names[0]:
                wrong = sorted(set(others) ^ set(names[0]))
                raise ArgumentError("gorun.elastic: the States of ranks 0 and %d differ: only one of them has %s" % (rank, ", ".join(wrong)))
        fresh = self._id == (0, 0)
        if fresh and not self._commit.torn:
            self._commit.take(self._variables)
        have = world.all_gather_object([*self._id, self._commit.whole])
        newest = max((h[:2] for h in have if h[2]), default=None)
        if newest is None:
            raise Error("gorun.elastic: all ranks that had the state have died while the others received it")
        holders = [rank for rank, h in enumerate(have) if h[2] and h[:2] == newest]
        if newest == [0, 0]:
            holders = holders[:1]  # nobody has a commit: all begin with the variables of one rank
        receivers = [rank for rank in range(world.size) if rank not in holders]
        self._compare(world, holders)
        if receivers:
            self._transfer(world, holders, receivers)
        self.__dict__["_id"] = (int(os.environ.get("GORUN_ROUND", "0")), max(newest[1], 1))
        self._finish(world)

    def _compare(self, world: Group, holders: List[int]) -> None:
        """Raises an error on all ranks if the commits of those that have the newest one differ."""
        sums = world.all_gather_object(self._commit.checksums() if world.rank in holders and len(holders) > 1 else {})
        for rank in holders[1:]:
            for name, checksum in sums[rank].items():
                if sums[holders[0]].get(name) != checksum:
                    raise MismatchError(
                        "gorun.elastic: %s differs between ranks %d and %d: a State has the same contents on all ranks when they commit"
                        % (name, holders[0], rank)
                    )

    def _transfer(self, world: Group, holders: List[int], receivers: List[int]) -> None:
        sources = holders[:_SOURCES]
        if world.rank in receivers:
            self._commit.begin(world.recv_object(sources[0], _TAG))
        elif world.rank == sources[0]:
            for rank in receivers:
                world.send_object(self._commit.header, rank, _TAG)
        works = []
        if world.rank in receivers or world.rank in sources:
            parts = self._commit.parts(len(sources))
            for source, pieces in zip(sources, parts):
                for piece in pieces:
                    if world.rank in receivers:
                        works.append(world.irecv(piece, source, _TAG))
                    elif world.rank == source:
                        works += [world.isend(piece, rank, _TAG) for rank in receivers]
        for work in works:
            work.wait()
        if world.rank in receivers:
            self._commit.end()

    def _finish(self, world: Group) -> None:
        """Sets the variables, and raises an error on all ranks if one of them cannot."""
        why = ""
        try:
            self.restore()
        except Exception as e:
            why = str(e) or type(e).__name__
        for rank, text in enumerate(world.all_gather_object(why)):
            if text:
                raise ArgumentError("gorun.elastic: rank %d cannot take over the state of the others: %s" % (rank, text))


def run(function: Callable[[State], T], state: State, **options: Any) -> T:
    """Calls function(state) in a world of all ranks, and again in the next world whenever ranks have died, left or come.

    Before each call, the variables of all ranks have the contents of the newest commit; before the first, those that they have on one
    rank. The function makes its process groups and wrappers anew, and returns when the work is done, on all ranks. Options are those of
    gorun.init. Where workers do not outlive a failure, it is called once, and its error is raised.

    The default process group of torch is destroyed after each call, whatever its backend. In a new world init_method="gorun://" serves
    every backend.
    """
    world, failure = None, None
    try:
        while True:
            try:
                world = gorun.init(**options) if failure is None else gorun.rejoin()
                return _in_world(function, state, world)
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


def _in_world(function: Callable[[State], T], state: State, world: Group) -> T:
    state._sync(world)
    state.__dict__["_world"] = world
    try:
        result = function(state)
    finally:
        state.__dict__["_world"] = None
        _destroy_process_groups()
    world.all_gather_object("returned")  # a rank that is still in function makes another call, which is an error there and here
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

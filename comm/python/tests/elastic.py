"""A state outlives the death of ranks: gorun --on-failure=replace --max-restarts=4."""

import collections
import os
import time
import weakref

import numpy

import gorun.elastic

size = int(os.environ["WORLD_SIZE"])
deaths = [] if size == 1 else [(1, 7, "before"), (0, 13, "after"), (2, 22, "before")]  # rank, step, and side of the commit


def refused(what, call, *args, **keywords):
    try:
        call(*args, **keywords)
    except (gorun.Error, AttributeError) as e:
        assert what in str(e), e
        return
    raise AssertionError("no error with %r" % what)


def bad_states():
    refused("needs variables", gorun.elastic.State)
    refused("commit cannot be the name", gorun.elastic.State, commit=1)
    refused("a Part needs a name", gorun.elastic.Part, "", 1)
    refused("two Parts have the name 'x'", gorun.elastic.State, a=gorun.elastic.Part("x", 1), b=gorun.elastic.Part("x", 1))
    refused("a.1.b is a set", gorun.elastic.State, a=[1, {"b": {2}}])
    s = gorun.elastic.State(a=1, w=numpy.zeros(2))
    refused("has no variable 'b'", setattr, s, "b", 2)
    refused("has no variable 'b'", getattr, s, "b")
    refused("w is set in place", setattr, s, "w", numpy.ones(2))
    refused("there is no commit", s.restore)
    refused("only while run calls", getattr, s, "world")
    s.commit()
    s.a, s.w[:] = 2, 5
    s.restore()
    assert s.a == 1 and not s.w.any()
    s.a = {2}
    refused("a is a set", s.commit)
    s.restore()
    assert s.a == 1


def memory_of_states():
    """States that are gone give back their memory, and the descriptors of that of Parts."""

    def descriptors():
        return len(os.listdir("/proc/self/fd"))

    before, until = descriptors(), time.monotonic() + 60
    for _ in range(9):
        gorun.elastic.State(part=gorun.elastic.Part("part", numpy.zeros(10))).commit()
    while descriptors() > before + 4 and time.monotonic() < until:
        time.sleep(0.01)
    assert descriptors() <= before + 4, (descriptors(), before)


class Interrupting:
    """Calls commit or run while its state is restored, as another thread or a signal handler may."""

    def __init__(self, call):
        self.state, self.call = gorun.elastic.State(of=self), call

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        self.call(self.state)


class Counter:
    """Has a state, as a model does."""

    def __init__(self):
        self.n = 0

    def state_dict(self):
        return {"n": self.n}

    def load_state_dict(self, state):
        self.n = state["n"]


def other_names():
    """The program changes variables, and what they contain, by names of its own."""
    scalar, arrays, by_name = numpy.zeros(()), [numpy.zeros(1)], {"w": numpy.zeros(2)}
    past, counts, counters = [], collections.defaultdict(int), [Counter()]
    s = gorun.elastic.State(scalar=scalar, pair=(arrays[0], by_name["w"]), arrays=arrays, by_name=by_name, past=past, counts=counts, counters=counters)
    s.commit()
    s.restore()
    scalar[...], arrays[0][0], by_name["w"][1], counters[0].n = 1, 2, 3, 4
    past.append(5)
    counts["x"] += 6
    s.commit()
    scalar[...], arrays[0][0], by_name["w"][1], counters[0].n = 0, 0, 0, 0
    past.append(0)
    counts["y"] += 1
    s.restore()
    assert scalar == s.scalar == 1 and arrays[0][0] == s.arrays[0][0] == s.pair[0][0] == 2 and by_name["w"][1] == 3 and counters[0].n == 4
    assert past == s.past == [5] and counts == {"x": 6} and s.counts is counts
    for call in gorun.elastic.State.commit, lambda s: gorun.elastic.run(refused, s):
        alone = Interrupting(call).state
        alone.commit()
        refused("a commit or restore of this State is under way", alone.restore)
    counters.clear()
    refused("counters.0 has a NoneType here, and a state there", s.restore)


def kinds_of_values():
    point = collections.namedtuple("Point", "x y")
    generator = numpy.random.default_rng(1).bit_generator
    s = gorun.elastic.State(single=numpy.float32(1), big=-(2**70), random=generator.state, point=point(1, 2), keys={((1, 2), 3): None}, votes=(collections.Counter("aab"),))
    s.commit()
    wanted = generator.random_raw()
    s.single, s.big, s.random, s.point, s.keys, s.votes = numpy.float32(2), 0, None, point(3, 4), {}, None
    s.restore()
    generator.state = s.random
    assert generator.random_raw() == wanted
    assert type(s.single) is numpy.float32 and s.single == 1 and s.big == -(2**70) and s.point == point(x=1, y=2) and s.point.x == 1
    assert s.keys == {((1, 2), 3): None} and sorted(s.votes[0].elements()) == ["a", "a", "b"]
    refused("has type object", gorun.elastic.State, a=numpy.array([None]))
    refused("byte order", gorun.elastic.State, a=numpy.zeros(1, ">f8"))
    refused("is masked", gorun.elastic.State, a=numpy.ma.zeros(1))


weights, count = numpy.zeros(100_000), numpy.zeros((), numpy.int64)
rank, shard, counter = int(os.environ["RANK"]), numpy.zeros((300, 100), numpy.float32), Counter()
state = gorun.elastic.State(
    step=0, seen=[], names={"a": (1, "b"), 3: None}, weights=weights, count=count, none=numpy.zeros(0), sizes={},
    shard=gorun.elastic.Part("shard %d" % rank, shard), counter=gorun.elastic.Part("counter %d" % rank, counter),
)  # fmt: skip


wrappers, refusals, calls = [], [], 0


def commit_between_worlds(_):
    try:
        state.commit()
    except gorun.ArgumentError as e:
        refusals.append(str(e))


counter.n = 10 * rank


def train(state):
    global calls
    calls += 1
    world, wrapper = state.world, Counter()
    assert all(old() is None for old in wrappers), "what a call has made outlives it"
    assert state.step or os.environ["GORUN_ROUND"] == "1", "all ranks have begun anew"
    wrappers.append(weakref.ref(wrapper, commit_between_worlds))  # run drops the wrapper once it has the error
    assert numpy.all(weights == sum(range(state.step))), (weights[0], state.step)
    assert numpy.all(shard == (rank + 1) * state.step) and counter.n == 10 * rank + state.step, (shard[0], counter.n, state.step)
    refused("another run of this State is under way", gorun.elastic.run, train, state)
    death = deaths[int(os.environ["GORUN_ROUND"]) - 1 :][:1]
    while state.step < 30:
        grad = numpy.full(len(weights), float(state.step))
        work = world.iall_reduce(grad, gorun.AVG)
        refused("1 calls are under way", state.commit) if state.step == 3 else None
        work.wait()
        weights[...] += grad
        if death == [(world.rank, state.step, "before")]:
            os.kill(os.getpid(), 9)
        state.step += 1
        state.seen = state.seen + [state.step]
        # The first rank that is started again has memory for fewer bytes than the others, and then gets new memory, when they do not.
        state.sizes = {name: numpy.ones(1000 if state.step < 5 else 1) for name in ("ab" if state.step < 8 else "abcd")}
        count[...] = state.step
        shard[...] += rank + 1
        counter.n = 10 * rank + state.step
        state.commit()
        if death == [(world.rank, state.step - 1, "after")]:
            os.kill(os.getpid(), 9)
    wrappers.clear()
    return state.step


if os.environ["GORUN_ROUND"] == "1":  # a new rank begins anew
    memory_of_states()
    bad_states()
    other_names()
    kinds_of_values()
assert gorun.elastic.run(train, state) == 30
assert state.seen == list(range(1, 31)) and count == 30 and state.names == {"a": (1, "b"), 3: None}
assert numpy.all(weights == sum(range(30))), weights[0]
assert state.count == 30
assert refusals == ["gorun.elastic: commit: the function of run has returned"] * (calls - 1), refusals
assert len(deaths) + 1 == int(os.environ["GORUN_ROUND"])
print("rank %s: all of it" % os.environ["RANK"])

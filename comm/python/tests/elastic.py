"""A state outlives the death of ranks: gorun --on-failure=replace --max-restarts=4."""

import os

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


def differing_states():
    rank = int(os.environ["RANK"])
    nothing = lambda state: None  # noqa: E731
    refused("the States of ranks 0 and 1 differ: only one of them has b, c", gorun.elastic.run, nothing, gorun.elastic.State(**({"a": 1, "b": 1} if rank else {"a": 1, "c": 1})))
    refused("rank 1 cannot take over the state of the others: w has <f8 [2] here, and <f8 [1] there", gorun.elastic.run, nothing, gorun.elastic.State(w=numpy.zeros(1 + (rank == 1))))
    refused("rank 1 cannot take over the state of the others: w has <f4 [1] here, and <f8 [1] there", gorun.elastic.run, nothing, gorun.elastic.State(w=numpy.zeros(1, "f4" if rank == 1 else "f8")))


weights, count = numpy.zeros(100_000), numpy.zeros((), numpy.int64)
state = gorun.elastic.State(step=0, seen=[], names={"a": (1, "b"), 3: None}, weights=weights, count=count, none=numpy.zeros(0))


def train(state):
    world = state.world
    assert numpy.all(weights == sum(range(state.step))), (weights[0], state.step)
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
        count[...] = state.step
        state.commit()
        if death == [(world.rank, state.step - 1, "after")]:
            os.kill(os.getpid(), 9)
    return state.step


if os.environ["GORUN_ROUND"] == "1":  # a new rank begins anew
    bad_states()
assert gorun.elastic.run(train, state) == 30
assert state.seen == list(range(1, 31)) and count == 30 and state.names == {"a": (1, "b"), 3: None}
assert numpy.all(weights == sum(range(30))), weights[0]
assert len(deaths) + 1 == int(os.environ["GORUN_ROUND"])
if size > 1:
    differing_states()
print("rank %s: all of it" % os.environ["RANK"])

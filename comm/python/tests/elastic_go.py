"""A job of three ranks that share a State: ranks 0 and 2 are this program, and rank 1 is the program of Go in $GO_RANK. 0 and 1 are killed once."""

import os

import numpy

import gorun.elastic

rank, deaths = int(os.environ["RANK"]), [(0, 5), (1, 9)]
if rank == 1:
    os.execve(os.environ["GO_RANK"], ["rank"], dict(os.environ, ELASTIC_RANK="1"))
weights, shard = numpy.zeros(1001), numpy.zeros(10, numpy.int32)
state = gorun.elastic.State(step=0, notes=[], weights=weights, shard=gorun.elastic.Part("shard %d" % rank, shard))


def train(state):
    while state.step < 20:
        if (rank, state.step) in deaths[int(os.environ["GORUN_ROUND"]) - 1 :][:1]:
            os.kill(os.getpid(), 9)
        grad = numpy.full(len(weights), float(rank + state.step))
        state.world.all_reduce(grad)
        weights[...] += grad
        shard[...] += 1
        state.step += 1
        state.notes = state.notes + [state.step]
        state.commit()


gorun.elastic.run(train, state)
assert state.step == 20 and state.notes == list(range(1, 21)) and numpy.all(shard == 20), (state.step, state.notes, shard)
assert numpy.all(weights == sum(3 + 3 * step for step in range(20))), weights[0]
assert int(os.environ["GORUN_ROUND"]) == len(deaths) + 1  # nobody has begun anew
print("rank %d: all of it" % rank)

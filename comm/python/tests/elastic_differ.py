"""Ranks whose States do not fit: rank 1 says why, and so do the others. $CASE says which."""

import os

import numpy

import gorun.elastic
from gorun.elastic import Part, State

rank = int(os.environ["RANK"])
names = lambda *of: State(**{name: 1 for name in of})  # noqa: E731
state, want = {
    "names": (lambda: names("a", "b") if rank == 1 else names("a", "c"), '"c" (a value) in its State'),
    "shape": (lambda: State(w=numpy.zeros((1, 1 + rank))), '"w" is float64 × 1 × 1 on rank 0, and float64 × 1 × 2 on rank 1'),
    "type": (lambda: State(w=numpy.zeros(1, "f4" if rank else "f8")), '"w" is float64 × 1 on rank 0, and float32 × 1 on rank 1'),
    "form": (lambda: State(a=numpy.zeros(1) if rank else [1]), '"a" is a value on rank 0, and float64 × 1 on rank 1'),
    "parts": (lambda: State(a=1, shard=Part("shard", 1)), 'part "shard" is in the States of ranks 0 and 1: a part belongs to one rank'),
}[os.environ["CASE"]]
try:
    gorun.elastic.run(lambda state: None, state())
except gorun.Error as e:
    assert want in str(e), e
    assert isinstance(e, gorun.ArgumentError) or rank != 1, type(e)
    print("rank %d: all of it" % rank)

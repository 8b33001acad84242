"""Objects, messages, groups, wrong arguments, a fork, Ctrl-C, and the errors of the other ranks."""

import array
import os
import signal
import subprocess
import tempfile
import threading
import time

import gorun
import numpy


def refused(text, function, *args):
    try:
        function(*args)
    except gorun.ArgumentError as e:
        assert isinstance(e, ValueError) and text in str(e), e
    else:
        raise AssertionError("no error: " + text)


def connections():
    """The sockets and the shared memory of this process."""
    files = []
    for fd in os.listdir("/proc/self/fd"):
        try:
            files.append(os.readlink("/proc/self/fd/" + fd))
        except FileNotFoundError:
            pass  # that of the folder
    return [f for f in files if f.startswith(("socket:", "/memfd:"))]


own = connections()
refused("what", gorun.init, "what")
world = gorun.init()
rank, size = world.rank, world.size
following, previous = (rank + 1) % size, (rank - 1) % size
one, got = array.array("i", [rank]), array.array("i", [0])

# objects
thing = {"rank": rank, "list": [1, -2.5, None, True, b"\0", "\u00e9", {}], "big": 1 << 40}
assert world.all_gather_object(thing)[previous] == dict(thing, rank=previous)
assert world.gather_object(rank) == (list(range(size)) if rank == 0 else None)
assert world.broadcast_object([7] if rank == 1 else None, 1) == [7]
assert world.scatter_object(list("abcd")[:size] if rank == 0 else None) == "abcd"[rank]
world.send_object([rank], following)
assert world.recv_object(previous) == [previous]

# messages
assert world.sendrecv(one, following, got, previous) == (previous, 0, 1) and got[0] == previous
work = world.irecv(got, previous, 5)
assert not work.is_completed() and not work.wait(0.01)
world.barrier()
world.send(one, following, 5)
assert work.wait(60) and work.wait() and work.status().count == 1
assert world.iprobe() is None

# groups
half = world.split(rank % 2, -rank)
assert half.ranks() == sorted(range(rank % 2, size, 2), reverse=True)
half.close()
if rank < 2:
    with world.group([0, 1], "pair") as pair:
        pair.all_reduce(one)
assert (world.new_group([0]) is None) == (rank > 0)

# wrong arguments
refused("read-only", world.all_reduce, b"abcd")
refused("is str", world.all_reduce, "abcd")
refused("not contiguous", world.all_reduce, memoryview(bytearray(8))[::2])
refused("want a multiple of", world.all_gather, one, array.array("i", [0] * (size + 1)))
refused("different types", world.all_reduce, one, gorun.SUM, array.array("f", [0]))
refused("no rank", world.broadcast, one, size)
refused("has no meaning", world.all_reduce, array.array("f", [0]), gorun.BAND)
refused("buffers in out", world.all_gatherv, one, [one])
refused("it was called twice", gorun.init)
refused("the group is None", gorun.empty, None, 3)
refused("the group is None", gorun.Mesh, None, (1,), ("all",))
refused("'sum': wrong type", world.all_reduce, one, "sum")
refused("the name is 7", world.group, [rank], 7)
refused("has a set", world.broadcast_object, {1}, rank)

refused("read-only", world.all_reduce, numpy.float64(1))  # it could not change
for kind in (float, bool):  # the second time it is of a type that is known
    array_of, wrong = numpy.zeros((4, 4), kind), numpy.zeros(4, kind)
    wrong.flags.writeable = False
    for _ in range(2):
        world.all_reduce(array_of, gorun.MAX)
        refused("read-only", world.all_reduce, wrong, gorun.MAX)
        refused("not contiguous", world.all_reduce, array_of.T[:2], gorun.MAX)
        world.all_reduce(array_of[:0], gorun.MAX)
refused("byte order", world.all_reduce, numpy.zeros(1, ">f8"))
ten = numpy.zeros(10)
refused("overlap", world.all_reduce, ten[1:], gorun.SUM, ten[:-1])
whole = numpy.zeros(2 * size + 1)
refused("overlap", world.all_gather, whole[2 * rank + 1 :][:2], whole[:-1])
refused("no sum", world.all_reduce, numpy.zeros(1, bool))
refused("out of range", world.send, one, rank, 1 << 32)
refused("out of range", world.broadcast, one, 1 << 32)
refused("cannot be interpreted", world.broadcast, one, "0")
refused("out of range", world.group, [1 << 32], "long")
for root in (1 << 32, "0", -(1 << 31) - 1):
    refused("out of range" if root != "0" else "'0': 'str' object", world.bind, "broadcast", one, root)
refused("'sum': wrong type", world.bind, "all_reduce", one, "sum")
refused("of Unicode", world.group, [rank], "\udc80")
refused("is no Unicode", world.all_gather_object, ["\udc80"])
refused("the key (1, 2)", world.all_gather_object, {(1, 2): 3})
refused("is masked", world.all_reduce, numpy.ma.masked_array([1.0, 2.0], [0, 1]))
for shape, kind in ((-1, "f4"), ((2, -1), "f4"), ((1 << 62) + 1, "f4"), ((numpy.int64(1 << 40),) * 2, "f4"), (3, object)):
    refused("there is no array of shape", gorun.empty, world, shape, kind)

# scalars are inputs, rows are lists, bools have other reductions, and lists may be made as they are read
every = numpy.zeros((size, 1))
world.all_gatherv(numpy.float64(rank), every)
assert every.ravel().tolist() == list(range(size))
flag, part = numpy.array([rank == 1, False]), numpy.zeros(1)
world.all_reduce(flag, gorun.LOR)
assert flag.tolist() == [True, False]
world.reduce_scatterv((numpy.full(1, r + 1.0) for r in range(size)), part)
assert part[0] == size * (rank + 1)

# an operation keeps its buffers when its work has been dropped
for _ in range(10):
    if rank == 0:
        time.sleep(0.02)
    world.iall_reduce(numpy.ones(1 << 20))
    other = numpy.full(1 << 20, 7.0)
    world.barrier()
    assert (other == 7).all()
world.ibarrier().wait(float("inf"))
assert len(gorun._work._kept) < 10

# an array outlives its world, and does not free that of another
with tempfile.TemporaryDirectory() as folder:
    with gorun.init("file://" + folder + "/1", 0, 1) as alone:
        before = gorun.empty(alone, 1 << 20)
        before[:] = 2
    assert (before == 2).all()
    alone = gorun.init("file://" + folder + "/2", 0, 1)
    after = gorun.empty(alone, 1 << 20)
    after[:] = 1
    del before
    assert after.all()
    del after
    alone.close()

# a signal handler may make calls that wait, while a call waits
pair = world.new_group(range(size))
signal.signal(signal.SIGTERM, lambda *_: pair.barrier())
if rank == 0:
    threading.Timer(0.1, os.kill, [os.getpid(), signal.SIGTERM]).start()
else:
    time.sleep(0.6)
    pair.barrier()
world.barrier()

# a fork: the child has the descriptors of the program and none of the library's, and only the parent goes on
mine = os.open(__file__, os.O_RDONLY)
child = os.fork()
if child == 0:
    try:
        world.barrier()
    except gorun.ForkedError:
        os._exit(not (connections() == own and os.read(mine, 3) == b'"""'))
    os._exit(1)
assert os.waitpid(child, 0)[1] == 0
assert len(connections()) > len(own)
for more in ({}, {"preexec_fn": lambda: None}):  # without a fork, and with one
    assert subprocess.run(["cat"], input=b"text", stdout=subprocess.PIPE, **more).stdout == b"text"
world.barrier()
assert str(rank) in gorun.flight() and "barrier" in world.explain("barrier", 0)

# Ctrl-C
if rank == 0:
    begun = time.time()
    threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGINT]).start()
    try:
        world.barrier()
        raise AssertionError("no KeyboardInterrupt")
    except KeyboardInterrupt:
        assert time.time() - begun < 10
else:
    try:
        time.sleep(1)
        world.barrier()
        raise AssertionError("no error")
    except gorun.AbortError as e:
        assert (e.op, e.rank) == ("Barrier", 0) and e.seq > 0 and gorun.exit_code() == 1
world.close()
for call in (world.barrier, world.close, lambda: gorun.empty(world, 1), lambda: world.split(0)):
    try:
        call()
        raise AssertionError("no error")
    except gorun.ClosedError as e:
        assert "closed" in str(e), e
print("all of it")

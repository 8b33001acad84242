"""Objects, messages, groups, wrong arguments, a fork, Ctrl-C, and the errors of the other ranks."""

import array
import os
import signal
import threading
import time

import gorun


def refused(text, function, *args):
    try:
        function(*args)
    except gorun.ArgumentError as e:
        assert isinstance(e, ValueError) and text in str(e), e
    else:
        raise AssertionError("no error: " + text)


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
refused("has a set", world.broadcast_object, {1}, rank)

# a fork
child = os.fork()
if child == 0:
    try:
        world.barrier()
    except gorun.ForkedError:
        os._exit(0)
    os._exit(1)
assert os.waitpid(child, 0)[1] == 0
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
print("all of it")

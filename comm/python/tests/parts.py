"""Bound calls, meshes, stores, arrays that have only DLPack, and progress."""

import os
import signal
import tempfile
import threading
import time

import gorun
import numpy


def refused(text, function, *args, error=gorun.ArgumentError):
    try:
        function(*args)
    except error as e:
        assert text in str(e), e
    else:
        raise AssertionError("no error: " + text)


refused("want auto, call or none", lambda: gorun.init(binding="all"))
cpus = os.sched_getaffinity(0)
world = gorun.init(binding="none")
assert os.sched_getaffinity(0) == cpus
rank, size = world.rank, world.size

# bound calls, each against the call itself
x = numpy.full(3, rank + 1, numpy.float32)
add = world.bind("all_reduce", x, gorun.MAX)
for _ in range(3):
    x[:] = rank + 1
    add()
    assert (x == size).all()
mine, all_of = numpy.array([rank, -rank], numpy.int64), numpy.empty(2 * size, numpy.int64)
gather = world.bind("all_gather", mine, all_of)
lists = [numpy.empty(2, numpy.int64) for _ in range(size)]
gatherv = world.bind("all_gatherv", mine, out=lists)
for n in range(2):
    mine[0] = rank + n
    gather()
    gatherv()
    assert all_of.reshape(size, 2).tolist() == [[r + n, -r] for r in range(size)] == [o.tolist() for o in lists]
world.bind("barrier")()
refused("'split' is no call that can be bound", world.bind, "split", 0)
refused("read-only", world.bind, "all_reduce", b"1234")
with world.split(0) as other:
    left = other.bind("barrier")
refused("Barrier: ", left, error=gorun.ClosedError)

# meshes
for shape in [(1, size), (size, 1)]:
    with gorun.Mesh(world, shape, ("data", "tensor")) as mesh:
        assert mesh.coordinates == ((0, rank) if shape[0] == 1 else (rank, 0))
        long, short = ("tensor", "data") if shape[0] == 1 else ("data", "tensor")
        assert mesh[long].ranks() == mesh.group("data", "tensor").ranks() == list(range(size)) and mesh[short].ranks() == [rank]
        one = numpy.ones(1)
        mesh[long].all_reduce(one)
        assert one[0] == size
        refused("no dimension 'pipe'", mesh.group, "pipe")
refused("%d places" % (size + 1), gorun.Mesh, world, (size + 1,), ("a",))
refused("want a name for each length", gorun.Mesh, world, (size,), ("a", "b"))
if size > 1:
    refused("different shapes or names", gorun.Mesh, world, (size,), ("a" if rank else "b",))

# stores, and a second world that meets in one
where = world.broadcast_object(tempfile.mkdtemp() if rank == 0 else None)
store = gorun.Store.file(os.path.join(where, "store"))
store.set("value %d" % rank, b"\0v" * 5000)
store.wait(["value %d" % r for r in range(size)], 60)
assert store.get("value 0") == b"\0v" * 5000
assert 1 <= store.add("sum", 1) <= size
world.barrier()
assert store.add("sum", 0) == size and store.delete("value %d" % rank) and not store.delete("value %d" % rank)
try:
    store.get("absent", 0.01)
    raise AssertionError("a value that nobody has set")
except gorun.MissingKeysError as e:
    assert "absent" in str(e), e
for wrong in (1, "a\0b"):
    refused("the key is", store.set, wrong, b"")
refused("the keys are 'abc'", store.wait, "abc", 0.01)
refused("out of range", store.add, "sum", 1 << 63)
refused("'text': wrong type", store.set, "key", "text")
for wait in (lambda: store.get("absent"), lambda: store.wait(["absent"], 60)):  # Ctrl-C
    threading.Timer(0.05, os.kill, [os.getpid(), signal.SIGINT]).start()
    begun = time.monotonic()
    try:
        wait()
        raise AssertionError("no KeyboardInterrupt")
    except KeyboardInterrupt:
        assert time.monotonic() - begun < 10
second = gorun.init(store=store, rank=rank, size=size, token="a secret of 32 bytes for a test.")
one = numpy.ones(1)
second.all_reduce(one)
assert one[0] == size
second.close()
store.close()
refused("store is closed", store.add, "sum", 1, error=gorun.ClosedError)
refused("store is closed", lambda: gorun.init(store=store, rank=0, size=1), error=gorun.ClosedError)


# DLPack
class Packed:
    """An array that has DLPack, and neither numpy's interface nor the buffer protocol."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **kw):
        return self.array.__dlpack__(**kw)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


for kind in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"):
    a = numpy.arange(6, dtype=kind).reshape(2, 3)
    world.all_reduce(Packed(a))
    assert (a == numpy.arange(6, dtype=kind).reshape(2, 3) * size).all(), kind
refused("is not contiguous", world.all_reduce, Packed(numpy.ones((4, 4))[:, ::2]))

# progress
gorun.progress()  # without --hang-timeout
os.environ["GORUN_PROGRESS_FILE"] = path = os.path.join(where, "progress %d" % rank)
gorun.progress()
assert os.path.getsize(path) == 0
os.utime(path, (1, 1))
gorun.progress()
assert os.path.getmtime(path) > 1
gorun.progress(7)
assert open(path).read() == "7"

world.barrier()
if rank == 0:
    import shutil

    shutil.rmtree(where)
world.close()
print("all of it")

"""Reductions of the program's own, objects as pickle, and ranks that meet in a store of their own."""

import functools
import os
import sys

import gorun
import numpy as np

opened = []


def open_store():
    opened.append(gorun.Store.file(os.path.join(os.environ["STORE"], os.environ["WORLD_SIZE"], os.environ["GORUN_ROUND"])))
    return opened[-1]


def fails(text, function, *args, error=gorun.ArgumentError, **keywords):
    try:
        function(*args, **keywords)
    except error as e:
        assert text in str(e), e
    else:
        raise AssertionError("no error: " + text)


def broken_store():
    raise LookupError("no such store")


os.makedirs(os.path.join(os.environ["STORE"], os.environ["WORLD_SIZE"]), exist_ok=True)
fails("no such store", gorun.init, round_store=broken_store, error=LookupError)
fails("no attribute", gorun.init, round_store=lambda: None, error=AttributeError)
world = gorun.init(round_store=open_store, transport=os.environ.get("TRANSPORT"))
rank, size = world.rank, world.size
assert len(opened) == 1
fails("is no store", opened[0].get, "key")  # it is the library's

# own reductions
hypot = gorun.Op(lambda acc, values: np.hypot(acc, values), commute=True)


def compose(acc, values):
    """Composes functions x -> a * x + b, whose order matters."""
    acc[1::2] += acc[::2] * values[1::2]
    acc[::2] *= values[::2]


order = gorun.Op(compose, block=2)
for dtype in (np.int64, np.float64, np.complex128):
    for count in (2, 5000):
        all_of = [((np.arange(count) * 7 + r) % 3 - 1).astype(dtype) for r in range(size)]

        def combined(arrays):
            result = arrays[0].copy()
            for a in arrays[1:]:
                compose(result, a)
            return result

        for started in (False, True):
            mine, out = all_of[rank].copy(), np.empty(count, dtype)
            if started:
                world.iall_reduce(mine, order, out).wait()
            else:
                world.all_reduce(mine, order, out)
            assert (out == combined(all_of)).all() and (mine == all_of[rank]).all()
            if started:
                world.iscan(mine, order, out).wait()
            else:
                world.bind("scan", mine, order, out)()
            assert (out == combined(all_of[: rank + 1])).all()
        part = np.empty(2, dtype)
        world.reduce_scatter(np.concatenate([a[:2] for a in all_of]), part, order)
        assert (part == combined([np.concatenate([a[:2] for a in all_of])[2 * rank :][:2]] * size)).all()
values = np.arange(1.0, 4.0)
world.all_reduce(values, hypot)
assert np.allclose(values, np.arange(1.0, 4.0) * np.sqrt(size))
half = np.full(3, rank + 1, np.float16)
world.all_reduce_coalesced([half], gorun.Op(np.maximum, commute=True))
assert (half == size).all()

# wrong ones: an error in the caller, and only that group fails
fails("multiple of 2", world.all_reduce, np.ones(3), order)
fails("is no function", gorun.Op, 7)
fails("blocks of 0", gorun.Op, compose, block=0)
for error, function in (
    (ZeroDivisionError, lambda acc, values: 1 // 0),
    (TypeError, lambda acc, values: np.hypot(acc, values)),  # no ints
    (ValueError, lambda acc, values: values.__setitem__(0, 1)),  # is read-only
):
    for started in (False, True):
        with world.split(0) as group:
            broken, ints = gorun.Op(function, name="broken"), np.ones(3000, np.int32)
            try:
                if started:
                    group.iall_reduce(ints, broken).wait()
                else:
                    group.all_reduce(ints, broken)
                assert size == 1
            except error:
                pass
            except gorun.AbortError as e:
                assert e.rank is not None and error.__name__ not in str(type(e)), e
            if size > 1:
                fails("aborted", group.barrier, error=gorun.AbortError)
world.barrier()

# objects as pickle, only where both sides say so
thing = {rank, (rank, 2.5)}
fails("has a set", world.all_gather_object, thing)
assert world.all_gather_object(thing, codec="pickle")[-1] == {size - 1, (size - 1, 2.5)}
assert world.broadcast_object(thing, codec="pickle", root=0) == {0, (0, 2.5)}
assert world.gather_object(thing, codec="pickle") == (None if rank else [{r, (r, 2.5)} for r in range(size)])
assert world.scatter_object([{r} for r in range(size)], codec="pickle") == {rank}
fails("cannot be pickled", world.send_object, lambda: 0, rank, codec="pickle")
fails("want cbor or pickle", world.send_object, 1, rank, codec="json")
for sent, got in (("pickle", "cbor"), ("cbor", "pickle")):
    for value in (None, 0, [], [0] * 13, "text", b"0123456789abcd"):
        world.send_object(value, rank, codec=sent)
        fails("sent with codec %s" % sent, world.recv_object, rank, codec=got)
world.send_object(functools.partial(max, 3), rank, codec="pickle")
assert world.recv_object(rank, codec="pickle")(2) == 3
world.close()
sys.stdout.write("all of it\n")

"""What programs do besides calls: cases.py CASE... Each rank prints "all of it" at the end, or ends as the case says."""

import atexit
import functools
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import gorun
import numpy

join = functools.partial(gorun.init, transport=os.environ.get("TRANSPORT"))


def fails(kinds, call):
    """Makes a call that must fail, and returns its error, which is one line."""
    try:
        call()
    except kinds as e:
        assert "\n" not in str(e) and str(e).startswith(("gorun", "comm: ")), e
        return e
    raise AssertionError("no error")


def total(world, count=1000):
    """Adds what the ranks have, and checks the sum."""
    t = numpy.full(count, world.rank + 1.0)
    world.all_reduce(t)
    assert (t == world.size * (world.size + 1) / 2).all(), t


# Other processes.


def child(how, queue):
    if how == "fork":
        e = fails(gorun.ForkedError, lambda: total(gorun._world))
        fails(gorun.ForkedError, gorun.init)
        fails(gorun.ForkedError, gorun._world.close)
    else:
        assert gorun._world is None  # it has imported this program, and joined nothing
        e = fails(gorun.Error, lambda: gorun.init(timeout=3))  # as the rank that its parent is
    queue.put(str(e))


def processes():
    """Processes of multiprocessing cannot join in, and the parent goes on."""
    world = join()
    for how in ("fork", "spawn", "forkserver"):
        if world.rank == 0:
            context = multiprocessing.get_context(how)
            queue = context.Queue()
            worker = context.Process(target=child, args=(how, queue))
            worker.start()
            print(how, queue.get(timeout=60))
            worker.join(60)
            assert worker.exitcode == 0, (how, worker.exitcode)
        total(world)
    subprocess.run(["true"], check=True)
    total(world)
    world.close()


# Threads.


def orders():
    """Two threads call on one group, on each rank in another order: an error of every rank, no other numbers."""
    world = join(timeout=20)
    second = threading.Event()
    errors = []

    def of(count):
        try:
            total(world, count)
        except gorun.Error as e:
            errors.append(e)

    threads = [threading.Thread(target=of, args=(n,)) for n in (10, 20)]
    for thread in threads if world.rank == 0 else reversed(threads):
        thread.start()
        second.wait(0.2)
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert any(isinstance(e, gorun.MismatchError) for e in errors), errors
    world.close()


def kinds():
    """The same, of two kinds, one of them started."""
    world = join(timeout=20)
    a, b = numpy.ones(4), numpy.ones(4)
    works = [world.iall_reduce(a), world.ibroadcast(b)] if world.rank else [world.ibroadcast(b), world.iall_reduce(a)]
    errors = []
    for work in works:
        try:
            work.wait()
        except gorun.Error as e:
            errors.append(e)
    assert any(isinstance(e, gorun.MismatchError) for e in errors), errors
    world.close()


def groups():
    """Two groups at once, in two threads, and 20 groups, which take no thread more."""
    world = join()
    pair = [world.new_group(range(world.size)) for _ in range(2)]
    errors = []

    def of(group, count):
        try:
            for _ in range(300):
                total(group, count)
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=of, args=(g, n)) for g, n in zip(pair, (3, 50000))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors

    def use(list_of):
        for group in list_of:
            total(group)
            group.iall_reduce(numpy.ones(5)).wait()

    few = [world.new_group(range(world.size)) for _ in range(4)]
    use(few)
    before = len(os.listdir("/proc/self/task"))
    many = [world.new_group(range(world.size)) for _ in range(20)]
    for _ in range(3):
        use(many)
    after = len(os.listdir("/proc/self/task"))
    assert after <= before + 2, (before, after)  # Go's own, that come and go
    world.close()


def works():
    """Threads wait for the same works, and drop works."""
    world = join()
    own = [world.new_group([world.rank]) if r == world.rank else world.new_group([r]) for r in range(world.size)][world.rank]
    errors = []

    def drops():
        try:
            for _ in range(1000):
                own.iall_reduce(numpy.ones(100))
        except BaseException as e:
            errors.append(e)

    def waits(work, again):
        try:
            while not work.wait(0 if again else None):
                pass
            assert work.status() == (0, 9, 1), work.status()
        except BaseException as e:
            errors.append(e)

    def together(threads):
        for thread in threads:
            thread.start()
        return threads

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    for thread in together([threading.Thread(target=drops) for _ in range(4)]):
        thread.join()
    for _ in range(50):
        work = own.irecv(numpy.zeros(1), 0, 9)
        threads = together([threading.Thread(target=waits, args=(work, i % 2)) for i in range(4)])
        own.send(numpy.zeros(1), 0, 9)
        for thread in threads:
            thread.join()
    sys.setswitchinterval(interval)
    assert not errors, errors
    begun = time.monotonic()
    for _ in range(2000):
        own.irecv(numpy.zeros(1), 0, 9)
    for _ in range(2000):
        own.isend(numpy.zeros(1), 0, 9)
    assert time.monotonic() - begun < 20
    world.close()


# Signals.


def signals():
    """Handlers run while a call waits, and may raise; the group goes on, unless the call has been left."""
    world = join()
    seen = []
    for name in ("SIGUSR1", "SIGCHLD", "SIGALRM", "SIGWINCH"):
        number = getattr(signal, name)
        signal.signal(number, lambda n, _: seen.append(n))
        if world.rank == 0:
            timers = [threading.Timer(0.1 + i / 50, os.kill, [os.getpid(), number]) for i in range(5)]
            for timer in timers:
                timer.start()
            world.barrier()
            assert seen and seen[-1] == number, (name, seen)
        else:
            time.sleep(0.6)
            world.barrier()
        total(world)
    if world.rank == 0:  # a handler that raises ends the call

        def raises(*_):
            raise ZeroDivisionError

        signal.signal(signal.SIGUSR1, raises)
        threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGUSR1]).start()
        try:
            world.barrier()
            raise AssertionError("no error")
        except ZeroDivisionError:
            pass
    else:
        time.sleep(0.6)
        assert fails(gorun.Error, world.barrier).rank == 0
    world.close()


# Ends.


def crash():
    """Rank 1 ends by the signal in the command line: the errors of the others name it, and gorun says how it ended."""
    number = int(sys.argv[1].partition(":")[2])
    world = join()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # gorun ends the others
    total(world)
    if world.rank == 1:
        if number == signal.SIGSEGV:
            import ctypes

            ctypes.string_at(8)
        os.kill(os.getpid(), number)
    e = fails(gorun.PeerError, lambda: [total(world) for _ in range(1000000)])
    assert e.rank == 1, e
    print("all of it", flush=True)
    os._exit(gorun.exit_code())


def leaves():
    """A rank that ends well without close, in whatever state, harms nobody who needs it no more."""
    world = join()
    total(world)
    other = world.new_group(range(world.size))

    def blocked():
        other.barrier()  # which never ends, as nobody else makes it

    if world.rank == 0:
        threading.Thread(target=blocked, daemon=True).start()
        other_work = world.irecv(numpy.zeros(4), 1, 99)
        assert not other_work.wait(0.2)
    world.barrier()
    atexit.register(print, "all of it", flush=True)


def raises():
    """The error of the others says which rank has ended, as it could not go on."""
    world = join()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # gorun ends the others
    total(world)
    if world.rank == 1:
        raise ZeroDivisionError("it could not go on")
    e = fails(gorun.PeerError, lambda: [total(world) for _ in range(1000000)])
    assert e.rank == 1, e
    print("all of it", flush=True)
    os._exit(gorun.exit_code())


# Wrong use.


def wrong():
    """Wrong use is one sentence."""
    import array

    world = join()
    total(world)
    if os.environ.get("GORUN_STORE_ADDR"):  # or else ranks may join a second world
        fails(gorun.Error, join)
    total(world)
    fails(gorun.MismatchError, lambda: world.new_group(range(world.size)).all_reduce(numpy.ones(2 + world.rank)))
    group = world.new_group(range(world.size))
    kind = ("f4", "i4")[world.rank % 2]
    fails(gorun.MismatchError, lambda: group.all_reduce(numpy.ones(2, kind)))
    group = world.new_group(range(world.size))
    fails(gorun.MismatchError, lambda: (group.broadcast(numpy.ones(2), world.rank), group.barrier()))  # no root waits for another rank
    group.close()
    fails(gorun.Error, lambda: total(group))
    total(world)
    world.close()
    for call in (world.barrier, lambda: total(world), world.ibarrier, lambda: world.send(array.array("i", [1]), 0), world.close):
        fails(gorun.Error, call)


if __name__ == "__main__":
    for case in [name.partition(":")[0] for name in sys.argv[1:]]:
        print(case, flush=True)
        globals()[case]()
    if case != "leaves":
        print("all of it", flush=True)

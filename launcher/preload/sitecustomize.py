"""Makes an interpreter of Python one that imports modules once, and from which gorun forks workers.

Python imports this module when it starts, after it has set up all else and before it reads the program that it is to
run. Here the interpreter stays, and does what the guard asks: interpreter_linux.go in launcher/guard describes the
messages. In a worker that it forks, this module is done, and Python goes on to the program as if nothing had been.
Nothing that it leaves in sys.modules is its own: workers find what new processes find.
"""

import os
import sys

from _gorun_auto import arguments, chosen, path0
from _gorun_checks import Reads, Refused, check, compare, files, generators, initial_environ, stamp

SOCKET, BOOTSTRAP = 3, 4  # descriptors
PATH = "/proc/self/fd/%d" % BOOTSTRAP
ROOM = b"_ROOM="  # a variable of blanks, which workers overwrite with theirs: /proc shows that memory
PR_SET_PDEATHSIG, SIGKILL = 1, 9
SET_MEMPOLICY = {"x86_64": 238, "aarch64": 237}  # numbers of the system call
MPOL_LOCAL, MPOL_PREFERRED_MANY, MAX_NODES = 4, 5, 1024


def send(sock, *words):
    made = (word if isinstance(word, bytes) else str(word).encode("utf-8", "backslashreplace") for word in words)
    text = b"\0".join(made)
    sock.sendall(len(text).to_bytes(4, "big") + text)


def receive(sock):
    """Returns the next message: its words and its files. If the guard is gone, so is this process."""
    import array

    data, files, size = b"", array.array("i"), 4
    while len(data) < size:
        part, control, _, _ = sock.recvmsg(min(size - len(data), 1 << 16), 256)
        if not part:
            os._exit(0)
        for _, _, rights in control:
            files.frombytes(rights[: len(rights) - len(rights) % files.itemsize])
        data += part
        if size == 4 and len(data) == 4:
            size += int.from_bytes(data, "big")
    return data[4:].split(b"\0"), list(files)


def load(sock, modules, opened, reads):
    """Imports modules, and returns the files that they were read from, with what tells whether they have changed.

    opened are the files that were open before. It raises Refused, with the name of the module that is the reason.
    """
    import importlib
    import random  # noqa: F401  so that one sees who sets its state

    before, here = set(sys.modules), path0()[0]
    if not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, here)
    directory, module = os.getcwd(), reads.module
    try:
        check(opened)
        module = "auto"
        for module in chosen(modules):
            reads.module = module
            send(sock, "importing", module)
            states = generators()
            importlib.import_module(module)
            check(opened)
            compare(states, generators())
    except Refused as e:
        raise Refused("%s %s" % (module, e)) from None
    except SystemExit as e:
        raise Refused("%s exits with code %s when it is imported" % (module, e.code)) from None
    except BaseException as e:
        text = ("%s: %s" % (type(e).__name__, e)).split("\n")[0]
        raise Refused("cannot import %s (%s)" % (module, text)) from None
    finally:
        reads.end()
        if here in sys.path and not getattr(sys.flags, "safe_path", False):
            sys.path.remove(here)
        os.chdir(directory)
    stamps = {}
    for name in set(sys.modules) - before:
        file = getattr(sys.modules[name], "__file__", None)
        if isinstance(file, str) and file.startswith("/"):
            stamps[file] = stamp(file)
    return stamps


def fork():
    """Returns None in a worker, and its pid in the interpreter.

    The worker's parent has ended, so the guard, a subreaper, adopts it.
    """
    reading, writing = os.pipe()
    middle = os.fork()
    if middle == 0:
        try:
            worker = os.fork()
            if worker == 0:
                os.close(reading)
                os.close(writing)
                return None
            os.setpgid(worker, worker)
            os.write(writing, b"%d" % worker)
        except OSError as e:
            os.write(writing, b"-%d" % e.errno)
        os._exit(0)
    os.close(writing)
    text = os.read(reading, 32)
    os.close(reading)
    os.waitpid(middle, 0)
    answer = int(text or b"-5")  # EIO
    if answer < 0:
        raise OSError(-answer, os.strerror(-answer))
    return answer


def worker_of(words):
    """Returns what a message fork says of the worker: its CPUs, NUMA nodes, arguments and environment."""
    _, cpus, nodes, count = words[:4]
    end = 4 + int(count)
    return cpus, nodes, words[4:end], words[end:]


def become(words, received, guard):
    """Makes this process the worker of a message fork, when the guard says so."""
    import ctypes

    cpus, nodes, encoded, environ = worker_of(words)
    argv = [os.fsdecode(word) for word in encoded]
    release, streams = received[0], received[1:]
    for number, file in enumerate(streams):
        os.dup2(file, number)
    for file in streams:
        os.close(file)
    if cpus:
        os.sched_setaffinity(0, [int(cpu) for cpu in cpus.split(b",")])
    if nodes:
        prefer([int(node) for node in nodes.split(b",")])
    begun = initial_environ()
    removed = {pair.partition(b"=")[0] for pair in begun} - set(os.environb)
    # by Python itself (LC_CTYPE), or by a module
    changed = [pair for pair in os.environb.items() if b"%s=%s" % pair not in begun]
    os.environ.clear()
    for variable in environ:
        name, _, value = variable.partition(b"=")
        if name not in removed:
            os.environb[name] = value
    os.environb.update(changed)
    start, end = memory(50)
    at = ctypes.string_at(start, end - start).find(ROOM)
    if at >= 0:
        show(start + at, len(ctypes.string_at(start + at)), sorted(set(environ) - begun, key=len))
    own = arguments()
    sys.argv[1:] = argv[len(own) - len(sys.argv) + 1 :]  # they may differ from the interpreter's, and from each other
    if argv != own:
        start, end = memory(48)
        show(start, end - start - 1, encoded)
    if hasattr(sys, "orig_argv"):
        sys.orig_argv[1:] = argv[1:]
    reseed()
    if not os.read(release, 1):
        os._exit(1)  # the guard has given this worker up
    os.close(release)
    prctl = libc().prctl
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)
    if os.getppid() != guard:
        os._exit(1)


def libc():
    import ctypes

    return ctypes.CDLL(None, use_errno=True)


def prefer(nodes):
    """Takes memory from these NUMA nodes, while they have any."""
    import ctypes

    mask = (ctypes.c_ulong * (MAX_NODES // (8 * ctypes.sizeof(ctypes.c_ulong))))()
    bits = 8 * ctypes.sizeof(ctypes.c_ulong)
    for node in nodes:
        mask[node // bits] |= 1 << node % bits
    number = SET_MEMPOLICY.get(os.uname().machine)
    if number and libc().syscall(number, MPOL_PREFERRED_MANY, mask, MAX_NODES + 1):
        libc().syscall(number, MPOL_LOCAL, None, 0)


def memory(field):
    """Returns where memory begins and ends, by a field of /proc/self/stat: 48 the arguments', 50 the environment's."""
    with open("/proc/self/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    return int(fields[field - 3]), int(fields[field - 2])


def show(at, room, words):
    """Writes words to the memory that /proc shows as arguments or environment, as far as they fit."""
    import ctypes

    text = b""
    for word in words:
        if len(text) + len(word) < room:
            text += word + b"\0"
    ctypes.memmove(at, text.ljust(room, b"\0"), room)


def reseed():
    """Gives each worker its own random numbers, as new processes have them. Python's own module does that by itself."""
    random = sys.modules.get("numpy.random")
    if random is not None:
        random.seed()
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "default_generator"):
        torch.default_generator.seed()
    process = sys.modules.get("multiprocessing.process")
    if process is not None:
        process.current_process().authkey = os.urandom(32)


def flush():
    """Writes what Python and C libraries hold back, so that no worker writes it once more."""
    sys.stdout.flush()
    sys.stderr.flush()
    libc().fflush(None)


def serve(sock, opened, reads):
    """Does what the guard asks. It returns in a worker only."""
    import gc

    words, _ = receive(sock)
    guard = int(words[1])
    try:
        libc()
        stamps = load(sock, [word.decode() for word in words[2:]], opened, reads)
        flush()
    except (Refused, ImportError, OSError) as e:
        send(sock, "failed", e)
        os._exit(1)
    gc.collect()
    gc.freeze()  # a collection would write to memory that the workers share
    send(sock, "ready")
    while True:
        words, received = receive(sock)
        if words[0] == b"check":
            changed = [file for file, was in stamps.items() if stamp(file) != was]
            send(sock, *(("changed", changed[0]) if changed else ("ready",)))
            continue
        try:
            reads.refuse(worker_of(words)[3])
            pid = fork()
        except OSError as e:
            send(sock, "refused", "its interpreter cannot fork: %s" % e.strerror)
            pid = 0
        except Refused as e:
            send(sock, "refused", e)
            pid = 0
        if pid is None:
            sock.close()
            become(words, received, guard)
            return
        for file in received:
            os.close(file)
        if pid:
            send(sock, "forked", pid)


def main():
    import socket

    sys.path.remove(PATH)
    sys.path_importer_cache.pop(PATH, None)
    own, _, _ = [sys.modules.pop(name) for name in ("sitecustomize", "_gorun_auto", "_gorun_checks")]
    os.close(BOOTSTRAP)
    opened, reads, failure = files(), Reads(), None
    try:
        import sitecustomize  # the one of this machine, if there is one
    except BaseException as e:
        failure = e
    try:
        serve(socket.socket(fileno=SOCKET), opened, reads)
    except BaseException as e:
        os.write(2, ("%s: %s\n" % (type(e).__name__, e)).encode("utf-8", "backslashreplace"))
        os._exit(1)
    if failure is not None:
        sys.modules.setdefault("sitecustomize", own)  # Python 3.8 fails if it cannot remove it
        raise failure  # which Python handles


main()

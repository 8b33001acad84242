"""Makes an interpreter of Python one that imports modules once, and from which gorun forks workers.

Python imports this module when it starts, after it has set up all else and before it reads the program that it is to
run. Here the interpreter stays, and does what the guard asks: interpreter_linux.go in launcher/guard describes the
messages. In a worker that it forks, this module is done, and Python goes on to the program as if nothing had been.
"""

import os
import sys

SOCKET, BOOTSTRAP = 3, 4  # descriptors
PATH = "/proc/self/fd/%d" % BOOTSTRAP
ROOM = b"_ROOM="  # a variable of blanks, which workers overwrite with theirs: /proc shows that memory
PR_SET_PDEATHSIG, SIGKILL = 1, 9
SET_MEMPOLICY = {"x86_64": 238, "aarch64": 237}  # numbers of the system call
MPOL_LOCAL, MPOL_PREFERRED_MANY, MAX_NODES = 4, 5, 1024
HARMLESS = ["/dev/" + name for name in ("null", "zero", "full", "random", "urandom")]
CHANGES = ("clear", "insert", "pop", "putenv", "remove", "setdefault", "update")  # calls, of sys.path or os.environ


class Refused(Exception):
    """The workers cannot be forked from this interpreter."""


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


def path0():
    """Returns what Python will put before sys.path for the program, and the file of the program; either may be None."""
    program = sys.argv[0]
    if program == "-c":
        return os.getcwd(), sys.argv[1] if len(sys.argv) > 1 else None
    if program == "-m":
        return os.getcwd(), None
    if os.path.isdir(program):
        return program, os.path.join(program, "__main__.py")
    if program.endswith(".pyz"):
        return program, None
    return os.path.dirname(os.path.realpath(program)), program


def arguments():
    """Returns the whole command line of the interpreter."""
    with open("/proc/self/cmdline", "rb") as file:
        return [os.fsdecode(word) for word in file.read().split(b"\0")[:-1]]


def file_of(name, path):
    """Returns the source of a module below the directories of path, or None, without running anything."""
    from importlib.machinery import PathFinder

    parts = name.split(".")
    for i in range(len(parts)):
        spec = PathFinder.find_spec(".".join(parts[: i + 1]), path)
        if spec is None:
            return None
        path = spec.submodule_search_locations
        if path is None and i + 1 < len(parts):
            return None
    if path is not None and spec.origin and spec.origin.endswith("__init__.py"):
        main = os.path.join(os.path.dirname(spec.origin), "__main__.py")
        return main if os.path.exists(main) else spec.origin
    return spec.origin


def imports(source):
    """Yields what a program imports at its top level: the modules, and the names that it takes from each.

    Where the program changes what later imports find (sys.path, or the environment), it yields None and the line, and
    ends.
    """
    import ast

    bodies = [ast.parse(source).body]
    while bodies:
        for node in bodies.pop():
            if changes(node):
                yield None, node.lineno
                return
            if isinstance(node, ast.Import):
                for name in node.names:
                    yield name.name, []
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module != "__future__":
                yield node.module, [name.name for name in node.names]
            elif isinstance(node, (ast.Try, ast.With)):
                bodies.append(node.body)


def changes(statement):
    """Reports whether a statement changes sys.path, other than at its end, or the environment."""
    import ast

    def dotted(node):
        if isinstance(node, ast.Attribute):
            return dotted(node.value) + "." + node.attr
        if isinstance(node, ast.Subscript):
            return dotted(node.value)
        return getattr(node, "id", "")

    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return False
    for node in ast.walk(statement):
        name = ""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES:
            name = dotted(node.func)
        elif isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del)):
            name = dotted(node)
        if name.startswith(("sys.path", "os.environ", "environ.", "os.putenv")) or name == "environ":
            return True
    return False


def found(program, here, seen):
    """Yields the installed modules that a program imports, also through its own modules in the directory here.

    seen has the files that have been read, and None once one of them changes what later imports find: then it ends.
    """
    from importlib.machinery import BuiltinImporter, FrozenImporter, PathFinder

    if program is None or program in seen or None in seen or len(seen) > 200:
        return
    seen.add(program)
    try:
        with open(program, "rb") as file:
            source = file.read()
        wanted = list(imports(source))
    except (OSError, SyntaxError, ValueError):
        return  # which the worker will say
    for module, names in wanted:
        if None in seen:
            return
        if module is None:
            seen.add(None)
            why = "changes sys.path or the environment: auto does not stand for what is imported after that"
            sys.stderr.write("%s:%d %s\n" % (program, names, why))
            return
        top = module.split(".")[0]
        own = here and PathFinder.find_spec(top, [here])
        if own:
            yield from found(file_of(module, [here]), here, seen)
            for part in names:
                yield from found(file_of(module + "." + part, [here]), here, seen)
        elif BuiltinImporter.find_spec(top) or FrozenImporter.find_spec(top) or installed(PathFinder.find_spec(top)):
            yield module


def installed(spec):
    """Reports whether a module is in a directory for installed modules, and not in the user's own."""
    import sysconfig

    if spec is None:
        return False
    places = [sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")]
    places += [path for path in sys.path if os.path.basename(path) in ("site-packages", "dist-packages")]
    files = [spec.origin] if spec.origin else list(spec.submodule_search_locations or [])
    return any(file.startswith(place + os.sep) for file in files for place in places if place)


def chosen(modules):
    """Returns the names of the modules to import, for the words that the user gave."""
    here, program = path0()
    if getattr(sys.flags, "safe_path", False):
        here = None
    names = []
    for module in modules:
        if module != "auto":
            names.append(module)
            continue
        if sys.argv[0] == "-m":
            program = file_of(arguments()[arguments().index("-m") + 1], sys.path)
        names += found(program, here, set())
    return list(dict.fromkeys(names))


def threads():
    return os.listdir("/proc/self/task")


def files():
    """Returns the files that are open, by descriptor."""
    opened = {}
    for fd in os.listdir("/proc/self/fd"):
        try:
            opened[fd] = os.readlink("/proc/self/fd/" + fd)
        except OSError:
            pass  # it was open for listdir
    return opened


def check(before):
    """Raises Refused if a fork of this process, in which these files were open, would not be what a new process is."""
    for fd, file in sorted(files().items()):
        if before.get(fd) != file and file not in HARMLESS:
            raise Refused("leaves %s open, and forked workers would share where they are in it" % file)
    if len(threads()) > 1:
        pid = os.fork()  # a library whose threads can be forked ends them first, and starts others when it needs them
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
    if len(threads()) > 1:
        names = set()
        for thread in threads():
            if int(thread) != os.getpid():
                with open("/proc/self/task/%s/comm" % thread) as file:
                    names.add(file.read().strip())
        raise Refused("starts threads (%s), which a forked worker would lack" % ", ".join(sorted(names)))
    children = ""
    for thread in threads():
        try:
            with open("/proc/self/task/%s/children" % thread) as file:
                children += file.read()
        except OSError:
            pass  # this kernel does not list them
    if children.strip():
        raise Refused("starts a process, which forked workers would share")
    cuda = sys.modules.get("torch.cuda")
    if cuda is not None and getattr(cuda, "is_initialized", bool)():
        raise Refused("opens a GPU, which forked workers cannot use")


class Reads:
    """Notes which variables are read, and by the import of which module. All that reads one uses os.environ[name]."""

    def __init__(self):
        self.names, self.module = {}, "sitecustomize"
        self.kind, self.get = type(os.environ), type(os.environ).__getitem__

        def get(environ, name):
            self.names.setdefault(environ.encodekey(name), self.module)
            return self.get(environ, name)

        self.kind.__getitem__ = get

    def end(self):
        self.kind.__getitem__ = self.get
        self.names.pop(b"PYTHONPATH", None)  # the worker's is the same, but for the bootstrap

    def refuse(self, environ):
        """Raises Refused if a module has read a variable that is another in a worker with this environment."""
        begun = initial_environ()
        for variable in environ:
            name = variable.partition(b"=")[0]
            if name in self.names and variable not in begun:
                why = "%s reads %s when it is imported, which is each worker's own"
                raise Refused(why % (self.names[name], os.fsdecode(name)))


def initial_environ():
    """Returns the variables with which this process has begun, as name=value."""
    with open("/proc/self/environ", "rb") as file:
        return set(file.read().split(b"\0")) - {b""}


def load(sock, modules, opened, reads):
    """Imports modules, and returns the files that they were read from, with what tells whether they have changed."""
    import importlib
    import random  # noqa: F401  so that one sees who sets its state

    before, here = set(sys.modules), path0()[0]
    if not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, here)
    directory, program = os.getcwd(), reads.module
    try:
        check(opened)
        program = "auto"
        for program in chosen(modules):
            reads.module = program
            send(sock, "importing", program)
            states = generators()
            importlib.import_module(program)
            check(opened)
            compare(states, generators())
    except Refused as e:
        raise Refused("%s %s" % (program, e)) from None
    except SystemExit as e:
        raise Refused("%s exits with code %s when it is imported" % (program, e.code)) from None
    except BaseException as e:
        text = ("%s: %s" % (type(e).__name__, e)).split("\n")[0]
        raise Refused("cannot import %s (%s)" % (program, text)) from None
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


def generators():
    """Returns the states of the generators of random numbers that there are."""
    states = {"random": sys.modules["random"].getstate()}
    numpy, torch = sys.modules.get("numpy.random"), sys.modules.get("torch")
    if numpy is not None:
        key = numpy.get_state()
        states["numpy.random"] = (key[1].tobytes(), key[2])
    if torch is not None and hasattr(torch, "default_generator"):
        states["torch"] = (torch.initial_seed(), torch.default_generator.get_state().tolist())
    return states


def compare(before, now):
    """Raises Refused if an import has set or used a generator: workers get new seeds, and would not have what it has set."""
    for name, state in before.items():
        if now[name] != state:
            raise Refused("sets or uses the random numbers of %s when it is imported, and each worker has its own" % name)
    if "torch" not in before and now.get("torch", (1 << 63,))[0] < 1 << 32:  # no seed that torch chooses is so small
        raise Refused("sets the random numbers of torch when it is imported, and each worker has its own")


def stamp(file):
    try:
        stat = os.stat(file)
    except OSError:
        return None  # it is in a zip file, for example
    return stat.st_mtime_ns, stat.st_size


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


def become(words, received, guard):
    """Makes this process the worker of a request, when the guard says so."""
    import ctypes

    cpus, nodes, count = words[0], words[1], int(words[2])
    argv, environ = [os.fsdecode(word) for word in words[3 : 3 + count]], words[3 + count :]
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
        show(start, end - start - 1, words[3 : 3 + count])
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
            reads.refuse(words[4 + int(words[3]) :])
            pid = fork()
        except OSError as e:
            send(sock, "refused", "its interpreter cannot fork: %s" % e.strerror)
            pid = 0
        except Refused as e:
            send(sock, "refused", e)
            pid = 0
        if pid is None:
            sock.close()
            become(words[1:], received, guard)
            return
        for file in received:
            os.close(file)
        if pid:
            send(sock, "forked", pid)


def main():
    import socket

    sys.path.remove(PATH)
    sys.path_importer_cache.pop(PATH, None)
    own = sys.modules.pop("sitecustomize")
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

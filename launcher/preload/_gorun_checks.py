"""Whether the workers that are forked from an interpreter are what new processes would be."""

import os
import sys

HARMLESS = ["/dev/" + name for name in ("null", "zero", "full", "random", "urandom")]


class Refused(Exception):
    """The workers cannot be forked from this interpreter."""


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
    """Returns what changes when a file does."""
    try:
        stat = os.stat(file)
    except OSError:
        return None  # it is in a zip file, for example
    return stat.st_mtime_ns, stat.st_size

"""What a program imports at its top level, for which the word auto stands in --preload."""

import os
import sys

# Calls that change sys.path, other than at its end, or os.environ.
CHANGES = ("clear", "insert", "pop", "putenv", "remove", "setdefault", "update")


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


def file_of(name, path, run=False):
    """Returns the source of a module below the directories of path, or None, without running anything.

    If python -m runs it, that of a package is its __main__.py, if it has one.
    """
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
        return main if run and os.path.exists(main) else spec.origin
    return spec.origin


def imports(source):
    """Yields what a program imports at its top level: the line, the module, and the names that it takes from it.

    Where the program changes what later imports find (sys.path, or the environment), the module is None, and this ends.
    """
    import ast

    bodies = [ast.parse(source).body]
    while bodies:
        for node in bodies.pop():
            if changes(node):
                yield node.lineno, None, []
                return
            if isinstance(node, ast.Import):
                for name in node.names:
                    yield node.lineno, name.name, []
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module != "__future__":
                yield node.lineno, node.module, [name.name for name in node.names]
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
    for line, module, names in wanted:
        if None in seen:
            return
        if module is None:
            seen.add(None)
            why = "changes sys.path or the environment: auto does not stand for what is imported after that"
            sys.stderr.write("%s:%d %s\n" % (program, line, why))
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
            program = file_of(arguments()[arguments().index("-m") + 1], sys.path, True)
        names += found(program, here, set())
    return list(dict.fromkeys(names))

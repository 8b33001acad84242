"""The copy of a state: a header, which says what there is, and the contents of its arrays and tensors."""

import collections
import ctypes
import sys
import zlib
from typing import Any, Dict, Iterator, List

from . import _cbor
from ._buffers import SIZES, place
from ._errors import ArgumentError

_DICTS = {kind.__name__: kind for kind in (dict, collections.OrderedDict, collections.Counter)}


def _torch() -> Any:
    return sys.modules.get("torch")


def _is_tensor(value: Any) -> bool:
    torch = _torch()
    return torch is not None and isinstance(value, torch.Tensor)


def _is_array(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def _is_scalar(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.generic) and not isinstance(value, (float, str, bytes))


def _has_memory(value: Any) -> bool:
    return _is_tensor(value) or _is_array(value)


def _has_state(value: Any) -> bool:
    return hasattr(value, "state_dict") and hasattr(value, "load_state_dict")


def same_kind(old: Any, new: Any) -> bool:
    """Reports whether a variable may be assigned to: if not, it is set in place."""
    return new is old or not any(is_kind(value) for value in (old, new) for is_kind in (_has_memory, _has_state))


class Snapshot:
    """A copy of variables. whole says that there is one; torn, that there was, and that a part of another has overwritten it."""

    def __init__(self) -> None:
        self.header: Dict[str, Any] = {}
        self.leaves: List[Any] = []
        self.whole = self.torn = False

    def take(self, variables: Dict[str, Any]) -> None:
        """Copies variables. If one cannot be copied, the copy before stays."""
        found: List[Any] = []
        header = {name: _flatten(value, name, found) for name, value in variables.items()}
        _cbor.encode(header)
        leaves = self.leaves if [_describe(leaf) for leaf in self.leaves] == [_describe(leaf) for leaf in found] else [_like(leaf) for leaf in found]
        self.whole, self.torn = False, True  # until all is copied
        for leaf, source in zip(leaves, found):
            _copy(leaf, source)
        self.header, self.leaves = header, leaves
        self.whole, self.torn = True, False

    def restore(self, variables: Dict[str, Any]) -> Dict[str, Any]:
        """Sets variables to the copy, in place, and returns the values of those that cannot be."""
        return {name: _restore(self.header[name], value, name, self.leaves) for name, value in variables.items()}

    def begin(self, header: Dict[str, Any]) -> None:
        """Makes room for a copy that has this header."""
        self.whole, self.torn = False, True
        self.header, self.leaves = header, [_make(spec) for spec in _specs(header)]

    def end(self) -> None:
        self.whole, self.torn = True, False

    def checksums(self) -> Dict[str, int]:
        """Returns a checksum of each variable."""
        sums = {}
        for name, node in self.header.items():
            total = zlib.crc32(_cbor.encode(node))
            for spec in _specs(node):
                total = zlib.crc32(_bytes(self.leaves[spec[-1]]), total)
            sums[name] = total
        return sums

    def parts(self, n: int) -> List[List[Any]]:
        """Divides the contents into n parts of about the same size, as pieces of memory."""
        memory = [_bytes(leaf) for leaf in self.leaves]
        total = sum(len(m) for m in memory)
        parts: List[List[Any]] = [[] for _ in range(n)]
        before = 0
        for m in memory:
            at = 0
            while at < len(m):
                part = min((before + at) * n // max(total, 1), n - 1)
                end = min(len(m), -(-total * (part + 1) // n) - before) if part < n - 1 else len(m)
                parts[part].append(m[at:end])
                at = end
            before += len(m)
        return parts


def _flatten(value: Any, path: str, leaves: List[Any]) -> Any:
    """Describes a value by plain objects, in which arrays and tensors are numbers of leaves."""
    if _has_memory(value):
        leaves.append(value)
        return {"leaf": _describe(value) + [len(leaves) - 1]}
    if _is_scalar(value):
        import numpy

        return {"scalar": _flatten(numpy.asarray(value), path, leaves)}
    if _has_state(value):
        return {"state": _flatten(value.state_dict(), path, leaves)}
    if isinstance(value, dict):
        kind = type(value).__name__ if type(value) in _DICTS.values() else "dict"
        return {kind: [[key, _flatten(item, "%s.%s" % (path, key), leaves)] for key, item in value.items()]}
    if isinstance(value, (list, tuple)):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [_flatten(item, "%s.%d" % (path, i), leaves) for i, item in enumerate(value)]}
    if isinstance(value, int) and value.bit_length() > 63:
        return {"int": str(value)}
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return {"value": value}
    raise ArgumentError(
        "gorun.elastic: %s is a %s: want plain values, arrays, tensors, or what has state_dict and load_state_dict" % (path, type(value).__name__)
    )


def _restore(node: Dict[str, Any], value: Any, path: str, leaves: List[Any]) -> Any:
    """Returns the value of a variable: the old one, set in place, where that can be, since the program may have other names for it."""
    (kind, what), = node.items()
    if _has_memory(value) and (kind != "leaf" or what[:-1] != _describe(value)):
        raise ArgumentError("%s has %s here, and %s there" % (path, _words(_describe(value)), _words(what) if kind == "leaf" else "a " + kind))
    return _set(node, value, path, leaves)


def _set(node: Dict[str, Any], value: Any, path: str, leaves: List[Any]) -> Any:
    """Is _restore for what lists, tuples and dicts contain, too, where arrays of another shape replace the old ones."""
    (kind, what), = node.items()
    if (kind == "state") != _has_state(value):
        here, there = ("a state", "a " + kind) if _has_state(value) else ("a " + type(value).__name__, "a state")
        raise ArgumentError("%s has %s here, and %s there" % (path, here, there))
    if kind == "state":
        value.load_state_dict(_value(what, leaves))
    elif kind == "leaf" and _has_memory(value) and what[:-1] == _describe(value):
        _copy(value, leaves[what[-1]])
    elif kind in _DICTS and isinstance(value, dict):
        items = [(_key(key), item) for key, item in what]
        items = [(key, _set(item, value.get(key), "%s.%s" % (path, key), leaves)) for key, item in items]
        value.clear()
        for key, item in items:
            value[key] = item
    elif kind in ("list", "tuple") and isinstance(value, (list, tuple)):
        old = list(value) + [None] * (len(what) - len(value))
        items = [_set(item, old[i], "%s.%d" % (path, i), leaves) for i, item in enumerate(what)]
        if kind == "tuple":
            named = getattr(value, "_fields", None) is not None and len(value) == len(items)
            return type(value)(*items) if named else tuple(items)
        if not isinstance(value, list):
            return items
        value[:] = items
    else:
        return _value(node, leaves)
    return value


def _key(key: Any) -> Any:
    return tuple(_key(part) for part in key) if isinstance(key, list) else key


def _value(node: Dict[str, Any], leaves: List[Any]) -> Any:
    (kind, what), = node.items()
    if kind == "leaf":
        copy = _like(leaves[what[-1]])
        _copy(copy, leaves[what[-1]])
        return copy
    if kind in _DICTS:
        return _DICTS[kind]({_key(key): _value(item, leaves) for key, item in what})
    if kind in ("list", "tuple"):
        items = [_value(item, leaves) for item in what]
        return tuple(items) if kind == "tuple" else items
    if kind == "scalar":
        return _value(what, leaves)[()]
    if kind == "int":
        return int(what)
    return _value(what, leaves) if kind == "state" else what


def _specs(node: Any) -> Iterator[Any]:
    """Yields the descriptions of the leaves below a node, in their order."""
    if isinstance(node, dict):
        if list(node) == ["leaf"]:
            yield node["leaf"]
            return
        node = list(node.values())
    if isinstance(node, list):
        for item in node:
            yield from _specs(item)


def _describe(leaf: Any) -> List[Any]:
    kind = "torch" if _is_tensor(leaf) else "numpy"
    return [kind, str(leaf.dtype) if kind == "torch" else leaf.dtype.str, list(leaf.shape)]


def _words(spec: List[Any]) -> str:
    return "%s %s" % (spec[1], spec[2])


def _make(spec: List[Any]) -> Any:
    kind, dtype, shape = spec[:3]
    if kind == "torch":
        import torch

        return torch.empty(shape, dtype=getattr(torch, dtype.split(".")[1]))
    import numpy

    return numpy.empty(shape, numpy.dtype(dtype))


def _like(leaf: Any) -> Any:
    return _make(_describe(leaf))


def _copy(to: Any, source: Any) -> None:
    if _is_tensor(to):
        with _torch().no_grad():
            to.copy_(source)
    else:
        to[...] = source


def _bytes(leaf: Any) -> memoryview:
    """The memory of a leaf, which is contiguous."""
    at = place("elastic", "a variable", leaf, True)
    size = at.count * SIZES[at.type]
    if not size:
        return memoryview(b"")
    return memoryview((ctypes.c_ubyte * size).from_address(at.address)).cast("B")

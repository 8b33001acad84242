"""The copy of a state: a header, which says what there is, and the contents of its arrays and tensors."""

import ctypes
import sys
import zlib
from typing import Any, Dict, Iterator, List

from . import _cbor
from ._buffers import SIZES, _place
from ._errors import ArgumentError


def _torch() -> Any:
    return sys.modules.get("torch")


def _is_tensor(value: Any) -> bool:
    torch = _torch()
    return torch is not None and isinstance(value, torch.Tensor)


def _is_array(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)) and not isinstance(value, (float, complex))


def _has_state(value: Any) -> bool:
    return hasattr(value, "state_dict") and hasattr(value, "load_state_dict")


def same_kind(old: Any, new: Any) -> bool:
    """Reports whether a variable may be assigned to: if not, it is set in place."""
    return new is old or not any(is_kind(value) for value in (old, new) for is_kind in (_is_tensor, _is_array, _has_state))


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
    if _is_tensor(value) or _is_array(value):
        leaves.append(value)
        return {"leaf": _describe(value) + [len(leaves) - 1]}
    if _has_state(value):
        return {"state": _flatten(value.state_dict(), path, leaves)}
    if isinstance(value, dict):
        return {"dict": [[key, _flatten(item, "%s.%s" % (path, key), leaves)] for key, item in value.items()]}
    if isinstance(value, (list, tuple)):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [_flatten(item, "%s.%d" % (path, i), leaves) for i, item in enumerate(value)]}
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return {"value": value}
    raise ArgumentError(
        "gorun.elastic: %s is a %s: want plain values, arrays, tensors, or what has state_dict and load_state_dict" % (path, type(value).__name__)
    )


def _restore(node: Dict[str, Any], value: Any, path: str, leaves: List[Any]) -> Any:
    """Returns the value of a node. What can be set in place is."""
    (kind, what), = node.items()
    if _is_tensor(value) or _is_array(value) and getattr(value, "shape", ()) != ():
        if kind != "leaf" or what[:-1] != _describe(value):
            raise ArgumentError("%s has %s here, and %s there" % (path, _words(_describe(value)), _words(what) if kind == "leaf" else "a " + kind))
        _copy(value, leaves[what[-1]])
        return value
    if _has_state(value):
        if kind != "state":
            raise ArgumentError("%s has a state here, and a %s there" % (path, kind))
        value.load_state_dict(_value(what, leaves))
        return value
    return _value(node, leaves)


def _value(node: Dict[str, Any], leaves: List[Any]) -> Any:
    (kind, what), = node.items()
    if kind == "leaf":
        copy = _like(leaves[what[-1]])
        _copy(copy, leaves[what[-1]])
        return copy
    if kind == "dict":
        return {tuple(key) if isinstance(key, list) else key: _value(item, leaves) for key, item in what}
    if kind in ("list", "tuple"):
        items = [_value(item, leaves) for item in what]
        return tuple(items) if kind == "tuple" else items
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
    at = _place("elastic", "a variable", leaf, True)
    size = at.count * SIZES[at.type & 0xFF]
    if not size:
        return memoryview(b"")
    return memoryview((ctypes.c_ubyte * size).from_address(at.address)).cast("B")

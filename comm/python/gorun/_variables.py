"""How a variable is kept in a commit: a tree, which says what there is, and the contents of its leaves, which are arrays and tensors.

A node of the tree is a plain object {kind: what}. The kinds are:

    value                 what CBOR has as it is
    int                   one that CBOR does not have, as text
    leaf                  [type, shape, library, where in the contents it begins]; a variable that is a leaf has only the first two
    scalar                a scalar of numpy, as a leaf
    state                 the node of what state_dict has returned
    list, tuple           the nodes of the items
    dict and other dicts  [key, node] for each item
"""

import collections
import ctypes
import sys
from typing import Any, Dict, List, NamedTuple, Tuple

from . import _cbor
from ._buffers import place
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


def assignable(old: Any, new: Any) -> bool:
    """Reports whether a variable may be assigned to: if not, it is set in place."""
    return new is old or not any(is_kind(value) for value in (old, new) for is_kind in (_has_memory, _has_state))


class Variable(NamedTuple):
    """A variable as it goes into a commit."""

    name: str
    tree: bytes  # as CBOR
    leaves: List["_Placed"]
    size: int  # bytes of the contents, which are those of the leaves

    def copy_to(self, memory: int) -> None:
        """Copies the leaves to memory: the address of the variable's contents in a commit."""
        end = 0
        for leaf, offset in self.leaves:
            ctypes.memset(memory + end, 0, offset - end)  # Run compares these bytes, too, and they may be those of another commit
            _copy(_leaf(_describe(leaf) + [offset], memory), leaf)
            end = offset + _size(leaf)


class _Placed(NamedTuple):
    """An array or a tensor of a variable, and where in its contents it is."""

    leaf: Any
    offset: int


_LINE = 64  # bytes of a cache line, where each array and tensor begins


def _end(leaves: List[_Placed]) -> int:
    """Returns how many bytes leaves take. The last one counts as it is: a slice of Go has no more."""
    return leaves[-1].offset + _size(leaves[-1].leaf) if leaves else 0


def flatten(name: str, value: Any) -> Variable:
    """Returns a variable as it goes into a commit, without a copy. Raises an ArgumentError if it cannot be kept."""
    leaves: List[_Placed] = []
    node = {"value": value} if _is_plain(value) else _flatten(value, name, leaves)
    if _has_memory(value):
        node["leaf"] = node["leaf"][:2]  # as a slice of Go: which library an array is of is each rank's own
    return Variable(name, _cbor.encode(node), leaves, _end(leaves))


def layout(value: Any) -> Tuple[str, bool]:
    """Returns the type of a variable, which has to be the same on all ranks, and whether it is an array. Go calls types by the same names."""
    if not _has_memory(value):
        return "a value", False
    dtype, shape = _describe(value)[:2]
    return " × ".join([dtype] + list(map(str, shape))), True


def restore(name: str, value: Any, tree: bytes, memory: int) -> Any:
    """Returns the value that a commit has: the old one, set in place, where that can be, since the program may have other names for it."""
    of = _cbor.decode(tree)
    (kind, what), = of.items()
    if kind == "value" and isinstance(what, (list, dict)):
        of = _flatten(what, name, [])
        (kind, what), = of.items()
    if kind == "leaf":
        what += [_describe(value)[2] if _has_memory(value) else "numpy", 0]
    if _has_memory(value) and (kind != "leaf" or what[:2] != _describe(value)[:2]):
        raise ArgumentError("%s has %s here, and %s there" % (name, _words(_describe(value)), _words(what) if kind == "leaf" else "a " + kind))
    return _set(of, value, name, memory)


def _is_plain(value: Any) -> bool:
    """Reports whether CBOR has all of a value, so that Go can decode it."""
    if type(value) is list:
        return all(map(_is_plain, value))
    if type(value) is dict:
        return all(type(key) is str and _is_plain(item) for key, item in value.items())
    return value is None or type(value) in (bool, float, str, bytes) or type(value) is int and value.bit_length() < 64


def _flatten(value: Any, path: str, leaves: List[_Placed]) -> Any:
    """Describes a value by plain objects. An array or a tensor is a leaf: its type and shape, what it is, and where its contents begin."""
    if _has_memory(value):
        value = _local(value)
        _check(value, path)
        offset = -(-_end(leaves) // _LINE) * _LINE
        leaves.append(_Placed(value, offset))
        return {"leaf": _describe(value) + [offset]}
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


def _set(node: Dict[str, Any], value: Any, path: str, memory: int) -> Any:
    """Returns the value of a node, which is the old one, set in place, where that can be.

    Unlike restore it takes any array in place of an old one: those in lists, tuples and dicts may get another shape or type.
    """
    (kind, what), = node.items()
    if (kind == "state") != _has_state(value):
        here, there = ("a state", "a " + kind) if _has_state(value) else ("a " + type(value).__name__, "a state")
        raise ArgumentError("%s has %s here, and %s there" % (path, here, there))
    if kind == "state":
        load(value, _value(what, memory))
    elif kind == "leaf" and _has_memory(value) and what[:2] == _describe(value)[:2]:
        _copy(value, _leaf(what, memory))
    elif kind in _DICTS and isinstance(value, dict):
        items = [(_key(key), item) for key, item in what]
        items = [(key, _set(item, value.get(key), "%s.%s" % (path, key), memory)) for key, item in items]
        value.clear()
        for key, item in items:
            value[key] = item
    elif kind in ("list", "tuple") and isinstance(value, (list, tuple)):
        old = list(value) + [None] * (len(what) - len(value))
        items = [_set(item, old[i], "%s.%d" % (path, i), memory) for i, item in enumerate(what)]
        if kind == "tuple":
            named = getattr(value, "_fields", None) is not None and len(value) == len(items)
            return type(value)(*items) if named else tuple(items)
        if not isinstance(value, list):
            return items
        value[:] = items
    else:
        return _value(node, memory)
    return value


def _key(key: Any) -> Any:
    """Returns a key of a dict. CBOR makes lists of tuples, and a list is no key."""
    return tuple(_key(part) for part in key) if isinstance(key, list) else key


def _value(node: Dict[str, Any], memory: int) -> Any:
    """Returns a new value of a node."""
    (kind, what), = node.items()
    if kind == "leaf":
        return _leaf(what, memory).copy() if what[2] == "numpy" else _leaf(what, memory).clone()
    if kind in _DICTS:
        return _DICTS[kind]({_key(key): _value(item, memory) for key, item in what})
    if kind in ("list", "tuple"):
        items = [_value(item, memory) for item in what]
        return tuple(items) if kind == "tuple" else items
    if kind == "scalar":
        return _value(what, memory)[()]
    if kind == "int":
        return int(what)
    return _value(what, memory) if kind == "state" else what


def _local(leaf: Any) -> Any:
    """Returns what this rank has of a DTensor, and anything else as it is."""
    return leaf.to_local() if hasattr(leaf, "to_local") else leaf


def _describe(leaf: Any) -> List[Any]:
    """Returns what is in a node of a leaf, but for where its contents begin."""
    leaf = _local(leaf)
    if _is_tensor(leaf):
        return [str(leaf.dtype).split(".")[1], list(leaf.shape), "torch"]
    return [leaf.dtype.name, list(leaf.shape), "numpy"]


def _words(spec: List[Any]) -> str:
    return "%s %s" % (spec[0], spec[1])


def _size(leaf: Any) -> int:
    return int(leaf.numel() * leaf.element_size() if _is_tensor(leaf) else leaf.nbytes)


def _check(leaf: Any, path: str) -> None:
    """Raises an ArgumentError if the contents of an array or a tensor cannot be kept."""
    if not _is_tensor(leaf):
        import numpy

        if isinstance(leaf, numpy.ma.MaskedArray):
            raise ArgumentError("gorun: elastic: %s is masked: name its data and its mask" % path)
        place("elastic", path, numpy.empty(1, leaf.dtype), True)
    elif str(leaf.layout) != "torch.strided" or leaf.is_quantized:
        raise ArgumentError("gorun: elastic: %s is not a dense tensor: use to_dense() or dequantize()" % path)
    else:
        place("elastic", path, _torch().empty(1, dtype=leaf.dtype), True)


def _leaf(spec: List[Any], memory: int) -> Any:
    """Returns an array or a tensor whose elements are in a commit, without a copy. memory is where the variable's contents begin."""
    dtype, shape, kind, offset = spec
    count = 1
    for n in shape:
        count *= n
    if kind == "torch":
        import torch

        of = getattr(torch, dtype)
        if not count:
            return torch.empty(shape, dtype=of)
        size = count * torch.empty(0, dtype=of).element_size()
        return torch.frombuffer((ctypes.c_ubyte * size).from_address(memory + offset), dtype=of).reshape(shape)
    import numpy

    of = numpy.dtype(dtype)
    if not count:
        return numpy.empty(shape, of)
    return numpy.frombuffer((ctypes.c_ubyte * (count * of.itemsize)).from_address(memory + offset), of).reshape(shape)


def _copy(to: Any, source: Any) -> None:
    if _is_tensor(to):
        with _torch().no_grad():
            _local(to).copy_(_local(source))
    else:
        to[...] = source


def load(target: Any, state: Any) -> None:
    """Is target.load_state_dict(state), where the state that a commit has kept may have this rank's shards in place of DTensors.

    FSDP2 shards a model anew in each world: commit {"model": model.state_dict(), "optimizer": optimizer.state_dict()} as a Part, and load both
    into the new ones.
    """
    torch = _torch()
    if torch is not None and isinstance(target, torch.optim.Optimizer):
        parameters = [p for group in target.param_groups for p in group["params"]]
        state = dict(state, state={i: _sharded(of, parameters[i]) for i, of in state["state"].items()})
    elif torch is not None and isinstance(target, torch.nn.Module):
        like = target.state_dict()
        state = {name: _sharded_tensor(value, like.get(name)) for name, value in state.items()}
    target.load_state_dict(state)


def _sharded(of: Dict[str, Any], parameter: Any) -> Dict[str, Any]:
    """Returns what an optimizer has of a parameter: tensors of its shape are sharded as it is."""
    return {name: _sharded_tensor(value, parameter) for name, value in of.items()}


def _sharded_tensor(value: Any, like: Any) -> Any:
    if not hasattr(like, "to_local") or hasattr(value, "to_local") or not _is_tensor(value) or value.shape != like.to_local().shape or not value.dim():
        return value
    return type(like).from_local(value, like.device_mesh, like.placements, run_check=False, shape=like.shape, stride=like.stride())

"""Where the elements of an array are that has only DLPack: https://dmlc.github.io/dlpack."""

import ctypes
from typing import Any, NamedTuple, Optional, Tuple


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int), ("device", ctypes.c_int), ("ndim", ctypes.c_int),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("offset", ctypes.c_uint64),
    ]  # fmt: skip


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64), ("tensor", _Tensor),
    ]  # fmt: skip


class Array(NamedTuple):
    """An array in C order. kind is numpy's: f4, or bf2 for bfloat16. The capsule keeps the memory where it is."""

    address: int
    shape: Tuple[int, ...]
    kind: str
    readonly: bool
    capsule: Any


_CPU = 1
_READ_ONLY = 1
_kinds = {0: "i", 1: "u", 2: "f", 4: "bf", 5: "c", 6: "b"}


def array(of: Any) -> Optional[Array]:
    """Returns where the elements of of are; None: it has no DLPack. It raises a ValueError that says what it cannot take."""
    if not hasattr(of, "__dlpack__") or not hasattr(of, "__dlpack_device__"):
        return None
    if of.__dlpack_device__()[0] != _CPU:
        raise ValueError("is not on the CPU: move it there")
    try:
        capsule = of.__dlpack__(max_version=(1, 0))
    except TypeError:  # of an older DLPack
        capsule = of.__dlpack__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    named = ctypes.pythonapi.PyCapsule_IsValid
    named.argtypes = [ctypes.py_object, ctypes.c_char_p]
    readonly = False
    if named(capsule, b"dltensor_versioned"):
        managed = _Versioned.from_address(pointer(capsule, b"dltensor_versioned"))
        tensor, readonly = managed.tensor, bool(managed.flags & _READ_ONLY)
        if managed.major != 1:
            raise ValueError("has DLPack %d, and gorun knows 1" % managed.major)
    else:
        tensor = _Tensor.from_address(pointer(capsule, b"dltensor"))
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    if tensor.strides:
        step = 1
        for i in reversed(range(tensor.ndim)):
            if shape[i] > 1 and tensor.strides[i] != step and 0 not in shape:
                raise ValueError("is not contiguous")
            step *= shape[i]
    kind = _kinds.get(tensor.code, "?") + str(tensor.bits * tensor.lanes // 8)
    return Array((tensor.data or 0) + tensor.offset, shape, kind, readonly, capsule)

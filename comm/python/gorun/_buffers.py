"""Where the elements of a buffer are: of numpy, torch, or anything that has Python's buffer protocol or DLPack."""

import ctypes
import sys
from typing import Any, Dict, NamedTuple, Optional, Set, Tuple

from . import _dlpack
from ._errors import ArgumentError

INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64 = range(1, 9)
FLOAT32, FLOAT64, COMPLEX64, COMPLEX128, FLOAT16, BFLOAT16 = range(9, 15)
SIZES = (0, 1, 2, 4, 8, 1, 2, 4, 8, 4, 8, 8, 16, 2, 2)  # bytes of an element, by type
BOOL = UINT8 | 0x100  # travels as UINT8
_SUMS = (1, 13)  # SUM and AVG

# numpy's kinds and sizes
_numpy: Dict[str, int] = {
    "i1": INT8, "i2": INT16, "i4": INT32, "i8": INT64, "u1": UINT8, "u2": UINT16, "u4": UINT32, "u8": UINT64,
    "f2": FLOAT16, "f4": FLOAT32, "f8": FLOAT64, "c8": COMPLEX64, "c16": COMPLEX128, "b1": BOOL,
}  # fmt: skip
# struct's formats; those of integers depend on the machine, so their sizes count
_signed, _unsigned = "bhilqn", "BHILQN"
_floats = {"e": FLOAT16, "f": FLOAT32, "d": FLOAT64, "Zf": COMPLEX64, "Zd": COMPLEX128, "?": BOOL, "c": UINT8}
_torch: Dict[str, int] = {
    "torch.int8": INT8, "torch.int16": INT16, "torch.int32": INT32, "torch.int64": INT64, "torch.uint8": UINT8,
    "torch.uint16": UINT16, "torch.uint32": UINT32, "torch.uint64": UINT64, "torch.float16": FLOAT16,
    "torch.float32": FLOAT32, "torch.float64": FLOAT64, "torch.complex64": COMPLEX64, "torch.complex128": COMPLEX128,
    "torch.bfloat16": BFLOAT16, "torch.bool": BOOL,
}  # fmt: skip
_native = "<" if sys.byteorder == "little" else ">"


class Place(NamedTuple):
    """Where elements are, how many, and of which type. It keeps what they belong to alive."""

    address: Optional[int]
    count: int
    type: int
    owner: Any


class _PyBuffer(ctypes.Structure):
    _fields_ = [
        ("buf", ctypes.c_void_p), ("obj", ctypes.py_object), ("len", ctypes.c_ssize_t), ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int), ("ndim", ctypes.c_int), ("format", ctypes.c_char_p), ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p), ("suboffsets", ctypes.c_void_p), ("internal", ctypes.c_void_p),
    ]  # fmt: skip


def place(op: str, name: str, buffer: Any, writable: bool, reduction: Any = 0) -> Place:
    """Returns where buffer is. op and name are for errors."""
    if type(buffer) in _arrays:  # most are arrays that can be written to, of types that have been seen before
        of = _dtypes.get(buffer.dtype)
        if of is not None:
            try:
                return _made(Place, (_address(_at(buffer)), buffer.size, of, buffer))
            except (TypeError, ValueError):
                pass  # it is not contiguous, has no elements, or is read-only
    at = _place(op, name, buffer, writable)
    if at.type != BOOL:
        return at
    if reduction in _SUMS:
        raise _refuse(op, name, "is of bool, which has no sum: use LOR, or another type")
    return at._replace(type=UINT8)


# numpy.ndarray, once there has been one, and its dtypes.
_arrays: Set[type] = set()
_dtypes: Dict[Any, int] = {}
_address, _at, _made = ctypes.addressof, ctypes.c_char.from_buffer, tuple.__new__


def _place(op: str, name: str, buffer: Any, writable: bool) -> Place:
    for of in (_of_numpy, _of_torch):
        found = of(op, name, buffer, writable)
        if found is not None:
            return found
    return _of_protocol(op, name, buffer, writable)


def _refuse(op: str, name: str, why: str) -> ArgumentError:
    return ArgumentError("gorun: %s: %s %s" % (op, name, why))


def _of_torch(op: str, name: str, t: Any, writable: bool) -> Optional[Place]:
    if not hasattr(t, "data_ptr"):
        return None
    if t.device.type != "cpu":
        raise _refuse(op, name, "is on %s: move it to the CPU" % t.device)
    if str(getattr(t, "layout", "")) != "torch.strided":
        raise _refuse(op, name, "is no dense tensor: use to_dense()")
    if not t.is_contiguous():
        raise _refuse(op, name, "is not contiguous: use contiguous()")
    if t.is_conj() or t.is_neg():
        raise _refuse(op, name, "is a view with other signs: use resolve_conj() or resolve_neg()")
    code = _torch.get(str(t.dtype))
    if code is None:
        raise _refuse(op, name, "has type %s, which gorun does not have" % t.dtype)
    return Place(t.data_ptr(), t.numel(), code, t)


def _of_numpy(op: str, name: str, a: Any, writable: bool) -> Optional[Place]:
    of = getattr(a, "__array_interface__", None)
    if not isinstance(of, dict) or not isinstance(of.get("data"), tuple) or "__ref" in of:
        return None  # numpy's scalars, which have __ref, show a copy
    order, kind = of["typestr"][0], of["typestr"][1:]
    code = _numpy.get(kind)
    if kind == "V2" and str(getattr(a, "dtype", "")) == "bfloat16":  # of package ml_dtypes
        code = BFLOAT16
    if code is None:
        raise _refuse(op, name, "has type %s, which gorun does not have" % getattr(a, "dtype", kind))
    if order not in ("|", "=", _native):
        raise _refuse(op, name, "is not in the byte order of this machine")
    if of.get("strides") is not None:
        raise _refuse(op, name, "is not contiguous: use numpy.ascontiguousarray")
    if any(c.__name__ == "MaskedArray" for c in type(a).__mro__):
        raise _refuse(op, name, "is masked: use its data and its mask")
    address, readonly = of["data"]
    if readonly and writable:
        raise _refuse(op, name, "is read-only, and would be written to")
    count = 1
    for n in of["shape"]:
        count *= n
    if code != BOOL and type(a).__module__ == "numpy" and type(a).__name__ == "ndarray":
        _arrays.add(type(a))
        _dtypes[a.dtype] = code
    return Place(address, count, code, a)


def _of_protocol(op: str, name: str, buffer: Any, writable: bool) -> Place:
    try:
        view = memoryview(buffer)
    except (TypeError, BufferError):
        found = _of_dlpack(op, name, buffer, writable)
        if found is not None:
            return found
        raise _refuse(op, name, "is %s: want an array of numpy or torch, or another buffer" % type(buffer).__name__) from None
    if not view.c_contiguous:
        raise _refuse(op, name, "is not contiguous")
    if view.readonly and writable:
        raise _refuse(op, name, "is read-only, and would be written to")
    code = _of_format(view.format, view.itemsize)
    if code is None:
        raise _refuse(op, name, "has format %r, which gorun does not have" % view.format)
    if view.nbytes == 0:
        return Place(None, 0, code, view)
    c = _PyBuffer()
    ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(view), ctypes.byref(c), 0)
    address = c.buf
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(c))
    return Place(address, view.nbytes // view.itemsize, code, view)  # the view keeps the memory where it is


def _of_dlpack(op: str, name: str, buffer: Any, writable: bool) -> Optional[Place]:
    try:
        a = _dlpack.array(buffer)
    except (ValueError, BufferError) as e:
        raise _refuse(op, name, str(e)) from None
    if a is None:
        return None
    code = BFLOAT16 if a.kind == "bf2" else _numpy.get(a.kind)
    if code is None:
        raise _refuse(op, name, "has type %s, which gorun does not have" % a.kind)
    if a.readonly and writable:
        raise _refuse(op, name, "is read-only, and would be written to")
    count = 1
    for n in a.shape:
        count *= n
    return Place(a.address, count, code, a.capsule)


def _of_format(text: str, size: int) -> Optional[int]:
    if text[:1] in "@=<>!" and len(text) > 1:
        if text[0] not in "@=" + _native and size > 1:
            return None
        text = text[1:]
    if text in _floats:
        return _floats[text]
    if len(text) == 1 and text in _signed:
        return {1: INT8, 2: INT16, 4: INT32, 8: INT64}.get(size)
    if len(text) == 1 and text in _unsigned:
        return {1: UINT8, 2: UINT16, 4: UINT32, 8: UINT64}.get(size)
    return None


def pair(op: str, buffer: Any, out: Any) -> Tuple[Place, Place]:
    """Returns where the input and the output of a call are, which have one type."""
    src = place(op, "the buffer", buffer, False)
    dst = place(op, "out", out, True)
    if src.type != dst.type:
        raise ArgumentError("gorun: %s: the buffer and out have different types" % op)
    return src, dst


_memory: Dict[int, str] = {
    INT8: "b", INT16: "h", INT32: "i", INT64: "q", UINT8: "B", UINT16: "H", UINT32: "I", UINT64: "Q", FLOAT32: "f", FLOAT64: "d",
}  # fmt: skip


def view(address: int, count: int, of: int, writable: bool = True) -> Any:
    """Returns elements in memory: an array of numpy, or else a memoryview. Elements of bfloat16 are shown as uint16."""
    bytes_of = memoryview((ctypes.c_char * (count * SIZES[of])).from_address(address)).cast("B")
    if not writable:
        bytes_of = bytes_of.toreadonly()
    try:
        import numpy
    except ImportError:
        return bytes_of.cast(_memory[of]) if of in _memory else bytes_of
    kind = "u2" if of == BFLOAT16 else next(k for k, code in _numpy.items() if code == of)
    return numpy.frombuffer(bytes_of, kind)


def assign(to: Any, value: Any) -> None:
    """Sets what view has returned to value."""
    if isinstance(to, memoryview):
        to[:] = value
    else:
        import numpy

        numpy.copyto(to, value, casting="same_kind")

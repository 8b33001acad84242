"""Types of gorun.h."""

import ctypes
import operator
from ctypes import CFUNCTYPE, POINTER, c_char, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint64, c_void_p
from typing import Any

from ._errors import ArgumentError


class LastError(ctypes.Structure):
    _fields_ = [
        ("code", c_int),
        ("rank", c_int),
        ("exit_code", c_int),
        ("signal", c_int),
        ("has_died", c_int),
        ("seq", c_uint64),
        ("op", c_char * 32),
        ("text", c_char * 4096),
    ]


class Status(ctypes.Structure):
    """What a receive has received."""

    _fields_ = [("source", c_int), ("tag", c_int), ("count", c_size_t)]


class Buffer(ctypes.Structure):
    """A buffer of a list."""

    _fields_ = [("data", c_void_p), ("count", c_size_t)]


class Options(ctypes.Structure):
    """How to join."""

    _fields_ = [
        ("init_method", c_char_p),
        ("rank", c_int),
        ("size", c_int),
        ("store", c_uint64),
        ("transport", c_char_p),
        ("token", c_char_p),
        ("timeout", c_double),
        ("quiet", c_int),
        ("binding", c_char_p),
    ]


OpFunction = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_size_t, c_int)
OpenFunction = CFUNCTYPE(c_int, c_void_p, POINTER(c_uint64))
_SET = CFUNCTYPE(c_int, c_void_p, c_char_p, c_void_p, c_size_t)
_GET = CFUNCTYPE(c_int, c_void_p, c_char_p, c_double, c_void_p, c_size_t, POINTER(c_size_t))
_ADD = CFUNCTYPE(c_int, c_void_p, c_char_p, c_int64, POINTER(c_int64))
_SWAP = CFUNCTYPE(c_int, c_void_p, c_char_p, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_size_t, POINTER(c_size_t))
_DELETE = CFUNCTYPE(c_int, c_void_p, c_char_p, POINTER(c_int))


class StoreFunctions(ctypes.Structure):
    """A store that is elsewhere."""

    _fields_ = [
        ("context", c_void_p),
        ("set", _SET),
        ("get", _GET),
        ("add", _ADD),
        ("compare_and_swap", _SWAP),
        ("delete_key", _DELETE),
    ]


class Int:
    """An argument that is an int of C: ctypes would cut longer ones."""

    bits, made = 32, c_int  # type: int, Any

    @classmethod
    def from_param(cls, value: Any) -> Any:
        n = operator.index(value)
        if not -(1 << cls.bits - 1) <= n < 1 << cls.bits - 1:
            raise ArgumentError("gorun: %d is out of range" % n)
        return cls.made(n)


class Long(Int):
    """An argument that is an int64_t of C."""

    bits, made = 64, c_int64


def text(name: str, value: Any) -> bytes:
    """Returns an argument as a string of C."""
    try:
        if "\0" not in value:
            return bytes(value.encode())
    except (TypeError, AttributeError, UnicodeEncodeError):
        pass  # it is no str, or has half a character
    raise ArgumentError("gorun: the %s is %r: want a str of Unicode without zero bytes" % (name, value))

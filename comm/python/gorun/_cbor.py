"""Objects as CBOR (RFC 8949): None, bool, int, float, str, bytes, lists, tuples (as lists) and dicts."""

import struct
from typing import Any, List, Tuple

from ._errors import ArgumentError

_MOST_DEEP = 100


def encode(value: Any) -> bytes:
    parts: List[bytes] = []
    _encode(value, parts, _MOST_DEEP)
    return b"".join(parts)


def _head(major: int, n: int) -> bytes:
    if n < 24:
        return bytes([major << 5 | n])
    for code, form in ((24, ">B"), (25, ">H"), (26, ">I"), (27, ">Q")):
        if n < 1 << 8 * struct.calcsize(form):
            return bytes([major << 5 | code]) + struct.pack(form, n)
    raise ArgumentError("gorun: an object has an integer of more than 64 bits")


def _encode(value: Any, parts: List[bytes], deep: int) -> None:
    if deep == 0:
        raise ArgumentError("gorun: an object has more than %d levels" % _MOST_DEEP)
    if value is None or value is True or value is False:
        parts.append({None: b"\xf6", True: b"\xf5", False: b"\xf4"}[value])
    elif isinstance(value, int):
        parts.append(_head(0, value) if value >= 0 else _head(1, -1 - value))
    elif isinstance(value, float):
        parts.append(b"\xfb" + struct.pack(">d", value))
    elif isinstance(value, str):
        try:
            text = value.encode()
        except UnicodeEncodeError as e:
            raise ArgumentError("gorun: an object has a str that is no Unicode: %s" % e) from None
        parts += (_head(3, len(text)), text)
    elif isinstance(value, (bytes, bytearray)):
        parts += (_head(2, len(value)), bytes(value))
    elif isinstance(value, (list, tuple)):
        parts.append(_head(4, len(value)))
        for item in value:
            _encode(item, parts, deep - 1)
    elif isinstance(value, dict):
        parts.append(_head(5, len(value)))
        for key, item in value.items():
            if isinstance(key, tuple):
                raise ArgumentError("gorun: an object has a dict with the key %r, which would be a list" % (key,))
            _encode(key, parts, deep - 1)
            _encode(item, parts, deep - 1)
    else:
        raise ArgumentError(
            "gorun: an object has a %s: want None, bool, int, float, str, bytes, list, tuple or dict" % type(value).__name__
        )


def decode(data: Any) -> Any:
    try:
        value, end = _decode(bytes(data), 0, _MOST_DEEP)
    except (IndexError, struct.error, UnicodeDecodeError, TypeError) as e:
        raise ArgumentError("gorun: an object cannot be decoded: %s" % e) from None
    if end != len(data):
        raise ArgumentError("gorun: an object cannot be decoded: there are %d bytes too many" % (len(data) - end))
    return value


_forms = {24: ">B", 25: ">H", 26: ">I", 27: ">Q"}


def _decode(b: bytes, at: int, deep: int) -> Tuple[Any, int]:
    if deep == 0:
        raise IndexError("it has too many levels")
    major, n = b[at] >> 5, b[at] & 31
    at += 1
    if major == 7:
        if n in (26, 27):
            form = ">f" if n == 26 else ">d"
            return struct.unpack_from(form, b, at)[0], at + struct.calcsize(form)
        return {20: False, 21: True, 22: None}[n] if n in (20, 21, 22) else _bad("a simple value", n), at
    if n in _forms:
        form = _forms[n]
        n, at = struct.unpack_from(form, b, at)[0], at + struct.calcsize(form)
    elif n > 27:
        _bad("a length", n)
    if major == 0:
        return n, at
    if major == 1:
        return -1 - n, at
    if n > len(b) - at:
        raise IndexError("it ends too early")
    if major == 2:
        return b[at : at + n], at + n
    if major == 3:
        return b[at : at + n].decode(), at + n
    if major == 4:
        items = []
        for _ in range(n):
            item, at = _decode(b, at, deep - 1)
            items.append(item)
        return items, at
    if major == 5:
        pairs = {}
        for _ in range(n):
            key, at = _decode(b, at, deep - 1)
            pairs[key], at = _decode(b, at, deep - 1)
        return pairs, at
    return _bad("a tag", n), at


def _bad(what: str, n: int) -> Any:
    raise IndexError("it has %s, %d" % (what, n))

"""The commits of a State: those of package comm/elastic, by the C library."""

from ctypes import POINTER, Structure, byref, c_char_p, c_int, c_size_t, c_uint64, c_void_p, string_at
from typing import Any, Dict, List, Optional, Tuple

from ._group import Group
from ._library import library
from ._variables import Variable


class Entry(Structure):
    _fields_ = [("name", c_char_p), ("tree", c_void_p), ("tree_length", c_size_t), ("memory", c_void_p), ("size", c_size_t)]


class Field(Structure):
    _fields_ = [("name", c_char_p), ("type", c_char_p), ("is_array", c_int)]


class Checkpoints:
    """The commits of a rank that has these parts, and of the rank whose partner it is. The part "" is what all ranks have."""

    def __init__(self, parts: List[str]) -> None:
        self._handle = c_uint64()
        self._free = library().unchecked("state_free")  # it fails in a forked child, which has nothing to free
        library().state_create((c_char_p * len(parts))(*[part.encode() for part in parts]), len(parts), byref(self._handle))

    def __del__(self) -> None:
        if self._handle:
            self._free(self._handle)

    def take(self, contents: Dict[str, List[Variable]]) -> None:
        """Copies variables, by their parts, for the next commit."""
        for part, variables in contents.items():
            entries = (Entry * len(variables))()
            for entry, variable in zip(entries, variables):
                entry.name, entry.size = variable.name.encode(), variable.size
                entry.tree, entry.tree_length = _address(variable.tree), len(variable.tree)
            library().state_take(self._handle, part.encode(), entries, len(variables))
            for entry, variable in zip(entries, variables):
                variable.copy_to(entry.memory or 0)

    def commit(self, contents: Dict[str, List[Variable]]) -> None:
        """Makes variables, by their parts, the last commit."""
        self.take(contents)
        library().state_commit(self._handle)

    def wait(self) -> None:
        """Waits until the parts of the last commit have arrived where they are kept."""
        library().state_wait(self._handle)

    def sync(self, world: Group, number: int, fields: List[Tuple[str, str, bool]]) -> None:
        """Brings all ranks of a world to the newest commit that is whole. number says which run of the program it is, from 1.

        fields are the name of each variable that all ranks have, its type, and whether it is an array.
        """
        made = (Field * len(fields))(*[(name.encode(), kind.encode(), is_array) for name, kind, is_array in fields])
        library().state_sync(self._handle, world._handle, number, made, len(fields))

    def entries(self, part: str, count: int) -> Optional[List[Tuple[bytes, int]]]:
        """Returns the tree of each variable of a part in the last commit, and the address of its contents.

        It returns None if the commit does not have so many variables, or there is none.
        """
        entries, n = (Entry * count)(), c_int()
        library().state_entries(self._handle, part.encode(), entries, count, byref(n))
        if n.value != count:
            return None
        return [(string_at(entry.tree, entry.tree_length), entry.memory or 0) for entry in entries]


def _address(data: bytes) -> Any:
    return c_void_p.from_buffer(c_char_p(data)).value

"""Reductions."""

import ctypes
from ctypes import c_int
from typing import Any, Callable, Optional, Union

from ._buffers import assign, view
from ._errors import ArgumentError, Error
from ._library import library
from ._types import OpFunction, text

SUM, PROD, MIN, MAX, BAND, BOR, BXOR, LAND, LOR, LXOR, MINLOC, MAXLOC, AVG = range(1, 14)


class Op:
    """A reduction of your own, which all ranks make with the same function.

    function(acc, values) gets two equally long parts of the vectors, acc those of the lower ranks: arrays of numpy, or
    memoryviews where there is no numpy. It changes acc in place, or returns what acc becomes; it does not change values.
    The reduction is associative. Unless it commutes, it is applied in the order of ranks. block elements make one value,
    and parts have whole values. Any thread may call function, and the arrays are there until it returns. What it raises,
    the call raises, and the group fails.

    >>> larger = gorun.Op(lambda acc, values: numpy.hypot(acc, values), commute=True)
    >>> world.all_reduce(grads, larger)
    """

    def __init__(
        self, function: Callable[[Any, Any], Any], commute: bool = False, block: int = 1, name: Optional[str] = None
    ) -> None:
        self._number = 0
        if not callable(function):
            raise ArgumentError("gorun: Op: %r is no function" % (function,))
        if block < 1:
            raise ArgumentError("gorun: Op: blocks of %d elements: want 1 or more" % block)
        self._function = OpFunction(library().safe(_caller(function)))
        number = c_int()
        name = name or getattr(function, "__qualname__", type(function).__name__)
        library().op_create(self._function, None, text("name", name), block, commute, ctypes.byref(number))
        self._number = number.value

    @property
    def _as_parameter_(self) -> int:
        return self._number

    def __del__(self) -> None:
        if self._number:
            try:
                library().op_free(self._number)
            except Error:
                pass  # it is the parent's


def _caller(function: Callable[[Any, Any], Any]) -> Callable[..., None]:
    def call(_: Any, acc: int, values: int, count: int, of: int) -> None:
        into = view(acc, count, of)
        result = function(into, view(values, count, of, writable=False))
        if result is not None and result is not into:
            assign(into, result)

    return call


Reduction = Union[int, Op]

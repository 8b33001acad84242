"""Errors as exceptions."""

from typing import Optional


class Error(RuntimeError):
    """A call has failed. Which one, and because of which rank, is in its fields."""

    op: str = ""  # the call, such as AllReduce
    seq: int = 0  # its number among the collectives of its group; 0: it has none
    rank: Optional[int] = None  # world rank at fault
    exit_code: Optional[int] = None  # how its process has ended, if that is known
    signal: Optional[int] = None  # the signal that has ended it


class ArgumentError(Error, ValueError):
    """The call is wrong in itself. Nothing was sent, and the group goes on."""


class PeerError(Error):
    """Another rank has died, has left, or does not answer."""


class AbortError(Error):
    """A member has aborted the group."""


class MissingRanksError(Error):
    """Ranks have not come."""


class MismatchError(Error):
    """Ranks have made different calls."""


class DeadlockError(Error):
    """Ranks wait for each other."""


class TruncateError(Error):
    """A message is longer than its buffer. It is lost, and the group goes on."""


class ClosedError(Error):
    """This process has closed the group or the store."""


class RoundOverError(Error):
    """gorun is forming another round: rejoin returns its world."""


class NoRejoinError(Error):
    """Workers do not outlive a round here."""


class MissingKeysError(Error):
    """Nobody has set a key of a store in time."""


class ForkedError(Error):
    """The process has been forked from one that uses gorun."""


MISSING_KEYS, INTERRUPTED, OTHER, FUNCTION = -11, -13, -14, -15  # codes of gorun.h that are not only for errors here
classes = {
    -1: ArgumentError,
    -2: PeerError,
    -3: AbortError,
    -4: MissingRanksError,
    -5: MismatchError,
    -6: DeadlockError,
    -7: TruncateError,
    -8: ClosedError,
    -9: RoundOverError,
    -10: NoRejoinError,
    MISSING_KEYS: MissingKeysError,
    -12: ForkedError,
}

for _class in [value for value in globals().values() if isinstance(value, type) and issubclass(value, Error)]:
    _class.__module__ = "gorun"  # where programs find it, and what a traceback says

"""Meshes: ranks in dimensions with names."""

from typing import Any, Dict, List, Sequence, Tuple

from ._group import Group
from ._errors import ArgumentError


class Mesh:
    """The ranks of a group in dimensions with names, in row-major order: torch's DeviceMesh, MPI's Cartesian communicator.

    Along each dimension a rank has a group of the ranks that differ from it only in that coordinate. Its rank there is
    the coordinate. All ranks of the group make it.

    >>> mesh = gorun.Mesh(world, (2, 4), ("data", "tensor"))
    >>> mesh["data"].all_reduce(grads, gorun.AVG)
    """

    def __init__(self, group: Group, shape: Sequence[int], names: Sequence[str]) -> None:
        if not isinstance(group, Group):
            raise ArgumentError("gorun: Mesh: the group is %r: want the world of gorun.init, or a group of it" % (group,))
        places = 1
        for n in shape:
            places *= n
        if len(shape) != len(names) or len(set(names)) != len(names) or min(shape, default=0) < 1:
            raise ArgumentError("gorun: Mesh: shape %s and names %s: want a name for each length" % (tuple(shape), tuple(names)))
        if places != group.size:
            raise ArgumentError("gorun: Mesh: shape %s has %d places, and the group %d ranks" % (tuple(shape), places, group.size))
        mine = {"shape": list(shape), "names": list(names)}
        if any(theirs != mine for theirs in group.all_gather_object(mine)):
            raise ArgumentError("gorun: Mesh: the ranks have given different shapes or names")
        self.shape, self.names = tuple(shape), tuple(names)
        self._group, self._groups = group, {}  # type: Group, Dict[Tuple[str, ...], Group]
        group._meshes += 1  # the same on all ranks
        self._name = "mesh %d %s" % (group._meshes, self.names)
        place: List[int] = []
        for n in reversed(self.shape):
            place.insert(0, group.rank // (places // group.size) % n)
            places *= n
        self.coordinates = tuple(place)
        for name in self.names:
            self.group(name)

    def group(self, *names: str) -> Group:
        """Returns the group of the ranks that differ from this one only in the coordinates of these dimensions.

        Its members alone make it, at the first call.
        """
        for name in names:
            if name not in self.names:
                raise ArgumentError("gorun: Mesh: it has no dimension %r: want one of %s" % (name, self.names))
        key = tuple(n for n in self.names if n in names)
        if key not in self._groups:
            ranks = [0]
            for i, n in enumerate(self.shape):
                along = range(n) if self.names[i] in names else (self.coordinates[i],)
                ranks = [r * n + at for r in ranks for at in along]
            self._groups[key] = self._group.group(ranks, "%s: %s" % (self._name, key))
        return self._groups[key]

    def __getitem__(self, name: str) -> Group:
        return self.group(name)

    def close(self) -> None:
        """Closes its groups."""
        for group in self._groups.values():
            group.close()
        self._groups.clear()

    def __enter__(self) -> "Mesh":
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None:
            self.close()

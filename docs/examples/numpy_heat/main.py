"""Heat in a rod, of which each rank has a part. Neighbours exchange the temperatures at their borders.

    gorun --nproc-per-node=4 docs/examples/numpy_heat/main.py
"""

import gorun
import numpy as np

POINTS = 64  # of the whole rod


def main():
    world = gorun.init()
    rank, size = world.rank, world.size
    first, last = POINTS * rank // size, POINTS * (rank + 1) // size
    t = np.zeros(last - first + 2)  # with a point of each neighbour
    if rank == 0:
        t[0] = 100.0  # the left end is hot, and the right end is cold
    change = np.empty(1)
    largest = world.bind("all_reduce", change, gorun.MAX)
    steps = 0
    while True:
        if rank > 0:
            world.sendrecv(t[1:2], rank - 1, t[0:1], rank - 1)
        if rank < size - 1:
            world.sendrecv(t[-2:-1], rank + 1, t[-1:], rank + 1)
        step = 0.5 * (t[:-2] - 2 * t[1:-1] + t[2:])
        t[1:-1] += step
        steps += 1
        change[0] = np.abs(step).max()
        largest()
        if change[0] < 1e-6:
            break
    rod = np.empty(POINTS) if rank == 0 else None
    parts = None if rod is None else [rod[POINTS * r // size : POINTS * (r + 1) // size] for r in range(size)]
    world.gatherv(t[1:-1], parts)
    if rod is not None:
        exact = 100 * (1 - np.arange(1, POINTS + 1) / (POINTS + 1))
        print(f"after {steps} steps the rod is within {np.abs(rod - exact).max():.3f} degrees of a straight line")
    world.close()


main()

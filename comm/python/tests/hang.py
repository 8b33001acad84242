"""One rank hangs where gorun's calls do not see it, and the others wait for it: hang.py RANK gorun, or gloo with DDP, HOW it hangs."""

import os
import sys
import threading
import time

import gorun

odd, backend, how = int(sys.argv[1]), sys.argv[2], sys.argv[3]


def load():
    if how == "lock":
        lock = threading.Lock()
        lock.acquire()
        lock.acquire()
    elif how == "pipe":
        os.read(os.pipe()[0], 1)
    while how == "naps":
        time.sleep(0.01)
    time.sleep(1000)


if backend == "gorun":
    import numpy

    world = gorun.init()
    rank, buffer = world.rank, numpy.ones(4)

    def work():
        world.all_reduce(buffer)

    def report():
        pass  # the calls are progress

else:
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
    report = gorun.progress

    def work():
        loss = model(torch.ones(2, 4)).sum()
        report()
        loss.backward()


for step in range(1000):
    report()
    if step == 20 and rank == odd:
        load()
    work()

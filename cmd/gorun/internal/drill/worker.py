"""A worker of a drill in PyTorch. It does what the one in Go does (worker.go and compute.go, which describe the messages)."""

import json
import os
import signal
import socket
import sys
import threading
import time

import torch
import torch.distributed as dist

import gorun.torch

PAUSE, REPORT = 0.005, 0.05  # seconds between two computations, and between two messages about them
LENGTHS = (2, 1000, 40000)


class Drill:
    """The connection to the drill, which listens at a socket."""

    def __init__(self, path, node):
        self.node, self.finish, self.loop = int(node), False, False
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.send(kind="started", place=self.place())
        threading.Thread(target=self.listen, daemon=True).start()

    def place(self):
        number = lambda name: int(os.environ[name])  # noqa: E731
        return {
            "node": self.node, "local": number("LOCAL_RANK"), "pid": os.getpid(), "round": number("GORUN_ROUND"), "rank": number("RANK"),
            "world": number("WORLD_SIZE"), "restarts": number("TORCHELASTIC_RESTART_COUNT"),
            "master": os.environ["MASTER_ADDR"] + ":" + os.environ["MASTER_PORT"],
        }  # fmt: skip

    def send(self, **message):
        self.socket.sendall(json.dumps(message).encode() + b"\n")

    def listen(self):
        for line in self.socket.makefile():
            if line.strip() == "finish":
                self.finish = True
            elif line.strip() == "loop":
                self.loop = True
            elif line.strip() == "take memory":
                taken = []
                while True:
                    taken.append(bytearray(b"x" * (1 << 20)))
        os._exit(1)  # the drill has ended


def numbers(turn, rank):
    """A rank's input in a turn: 0, followed by numbers that differ from those in neighbouring places, turns and ranks."""
    list = torch.arange(LENGTHS[turn % len(LENGTHS)]) + turn + rank
    list[0] = 0
    return list


def compute_in_world(drill, turn):
    """Computes in one world, whose ranks begin with the turn of the rank that has come furthest. Yields the turns that are done."""
    dist.init_process_group("gorun", init_method="gorun://")
    rank, size = dist.get_rank(), dist.get_world_size()
    furthest = torch.tensor([turn])
    dist.all_reduce(furthest, dist.ReduceOp.MAX)
    if furthest.item() < turn:
        raise Wrong("the most of all turns is %d, and %d are done here" % (furthest.item(), turn))
    turn, last = furthest.item(), 0.0
    while True:
        time.sleep(PAUSE)
        while drill.loop:
            pass
        sum = numbers(turn, rank)
        if drill.finish:
            sum[0] = 1
        dist.all_reduce(sum)
        want = size * (turn + torch.arange(len(sum))) + size * (size - 1) // 2
        if not torch.equal(sum[1:], want[1:]):
            raise Wrong("turn %d is wrong" % turn)
        turn += 1
        yield turn
        if sum[0] > 0:
            return
        if time.monotonic() - last > REPORT:
            last = time.monotonic()
            drill.send(kind="computed", state=turn, goroutines=len(os.listdir("/proc/self/task")))


class Wrong(Exception):
    """An operation has had a wrong result, and no error."""


def compute(drill, rejoins):
    turn, new = 0, True
    while True:
        try:
            if not new:
                gorun.rejoin()
                drill.send(kind="rejoined", place=drill.place())
            for turn in compute_in_world(drill, turn):
                pass
            dist.destroy_process_group()
            return
        except Wrong as e:
            drill.send(kind="wrong", error=str(e))
            raise
        except gorun.Error as e:
            code = -e.signal if e.signal else e.exit_code
            drill.send(kind="stuck", error=str(e), death=None if code is None else {"rank": e.rank, "exit_code": code, "out_of_memory": ", out of memory" in str(e)})
            if not rejoins or not isinstance(e, (gorun.PeerError, gorun.RoundOverError)):
                raise
            if dist.is_initialized():
                dist.destroy_process_group()
            new = False


def main():
    path, node, behaviours = sys.argv[1], sys.argv[2], sys.argv[3:]
    drill = Drill(path, node)

    def stop(*_):
        drill.send(kind="stopping")
        os._exit(0)

    signal.signal(signal.SIGTERM, stop)
    try:
        compute(drill, "rejoins" in behaviours)
    except gorun.Error:
        if "hangs" not in behaviours:
            raise
        threading.Event().wait()
    os._exit(0)  # on a busy machine, torch may take longer to end than --hang-timeout


main()

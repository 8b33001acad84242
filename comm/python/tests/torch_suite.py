"""Runs torch's own DistributedTest with backend gorun in the place of gloo, and prints how each case ends.

    torch_suite.py gloo|gorun FOLDER [PART OF A NAME]

It forks the ranks of a case. So torch is imported once.
"""

import os
import sys
import types
import unittest

backend, folder = sys.argv[1], sys.argv[2]
os.environ.update(BACKEND="gloo", TEMP_DIR=folder, WORLD_SIZE="3", MASTER_ADDR="127.0.0.1", OMP_NUM_THREADS="1")
if "expecttest" not in sys.modules:  # torch's tests import it, and the cases here do not use it
    stub = sys.modules["expecttest"] = types.ModuleType("expecttest")
    stub.TestCase, stub.ACCEPT = unittest.TestCase, True

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

torch.set_num_threads(1)


def use_gorun():
    """Makes torch make groups of gorun where it makes those of gloo: most cases are for gloo by name."""
    from gorun.torch._group import Group

    class ProcessGroupGloo(Group):
        def __init__(self, store, rank, size, timeout):
            known = sys._getframe(2).f_locals
            super().__init__(types.SimpleNamespace(
                store=store, group_rank=rank, group_size=size, timeout=timeout, group_id=known.get("group_name") or "",
                global_ranks_in_group=known.get("global_ranks_in_group") or [],
            ))  # fmt: skip

    def make(*args, **named):
        caller = sys._getframe(1).f_code.co_name  # another wants gloo for what it checks by itself
        return (ProcessGroupGloo if caller == "_new_process_group_helper" else gloo)(*args, **named)

    gloo, dist.ProcessGroupGloo, dist.distributed_c10d.ProcessGroupGloo = dist.ProcessGroupGloo, ProcessGroupGloo, make
    # torch wraps gloo and NCCL only, where it looks at all calls (TORCH_DISTRIBUTED_DEBUG=DETAIL)
    dist.distributed_c10d._create_process_group_wrapper = lambda wrapped_pg, **_: wrapped_pg


if backend == "gorun":
    use_gorun()

from torch.testing._internal import common_distributed  # noqa: E402
from torch.testing._internal.distributed import distributed_test as suite  # noqa: E402

common_distributed.TIMEOUT_DEFAULT = 60  # seconds of a case
# gorun's calls are not events of torch's profiler
for _list in (suite.PROFILING_SUPPORTED_BACKENDS, suite.SEND_RECV_PROFILING_SUPPORTED_BACKENDS):
    _list.clear()


class Cases(suite.TestDistBackend, suite.DistributedTest._DistTestBase):
    def setUp(self):
        super().setUp()
        self._start_processes(torch.multiprocessing.get_context("fork").Process)


class Result(unittest.TestResult):
    def stopTest(self, test):
        name, super_says = test._testMethodName, super().stopTest(test)
        bad = [text for case, text in self.failures + self.errors if case is test]
        if bad and os.environ.get("SHOW"):
            print(bad[0])
        print("failed" if bad else "skipped" if any(c is test for c, _ in self.skipped) else "passed", name, flush=True)
        return super_says


names = [n for n in unittest.defaultTestLoader.getTestCaseNames(Cases) if all(part in n for part in sys.argv[3:])]
unittest.TestSuite(Cases(n) for n in names).run(Result())

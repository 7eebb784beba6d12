#!/usr/bin/env python3
"""The limit of workspace in a job's terms: what cuDNN offers a running job, as its terms change.

    usage: workspace_test.py --build BUILD [unittest arguments]
"""
import signal
import sys

import agent_test
import job_test

# Writes the workspace of the first algorithm that it is offered into a file, again and again, until
# another file exists.
ASKER = """
import ctypes, os, sys, time
file, end = sys.argv[1:]
driver, dnn = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libcudnn.so.9")
pointer, size = ctypes.c_void_p, ctypes.c_size_t
context, handle, address = pointer(), pointer(), ctypes.c_uint64()
x, w, y, convolution = pointer(), pointer(), pointer(), pointer()
assert driver.cuInit(0) == 0
driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
driver.cuCtxSetCurrent(context)
assert driver.cuMemAlloc_v2(ctypes.byref(address), size(64 << 20)) == 0
assert dnn.cudnnCreate(ctypes.byref(handle)) == 0
for tensor, shape in ((x, (32, 64, 56, 56)), (y, (32, 64, 56, 56))):
    dnn.cudnnCreateTensorDescriptor(ctypes.byref(tensor))
    assert dnn.cudnnSetTensor4dDescriptor(tensor, 0, 0, *shape) == 0
dnn.cudnnCreateFilterDescriptor(ctypes.byref(w))
assert dnn.cudnnSetFilter4dDescriptor(w, 0, 0, 64, 64, 3, 3) == 0
dnn.cudnnCreateConvolutionDescriptor(ctypes.byref(convolution))
assert dnn.cudnnSetConvolution2dDescriptor(convolution, 1, 1, 1, 1, 1, 1, 1, 0) == 0

class Performance(ctypes.Structure):
    _fields_ = [("algorithm", ctypes.c_int), ("status", ctypes.c_int), ("time", ctypes.c_float), ("memory", size),
                ("determinism", ctypes.c_int), ("math", ctypes.c_int), ("reserved", ctypes.c_int * 3)]

while not os.path.exists(end):
    results, count = (Performance * 8)(), ctypes.c_int()
    assert dnn.cudnnGetConvolutionForwardAlgorithm_v7(handle, x, w, convolution, y, 8, ctypes.byref(count), results) == 0
    with open(file + ".new", "w") as out:
        out.write(str(results[0].memory))
    os.rename(file + ".new", file)
    time.sleep(0.01)
"""


class WorkspaceTest(job_test.JobFixture):
    def offered(self):
        file = self.folder / "offered"
        return int(file.read_text()) if file.exists() else -1

    def await_offer(self, fits):
        return agent_test.wait_for(self.offered, fits)

    def begin_asker(self):
        self.trainer = [sys.executable, "-c", ASKER, str(self.folder / "offered")]
        return self.begin(str(self.folder / "end"), *self.follow())

    def limit(self, job, size):
        done = self.spillway("budget", "set", job, "--workspace", size)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_running_job_is_offered_what_its_terms_allow(self):
        self.configure('[defaults]\nworkspace_limit = "8MiB"\n', usage_interval_ms=20)
        self.start()
        job = self.begin_asker()
        small = self.await_offer(lambda bytes_: bytes_ >= 0)
        self.assertLessEqual(small, 8 << 20)
        now = self.await_tenancy(job, lambda now: now["workspaces"]["other_algorithms"] > 0)
        self.assertEqual(now["workspaces"]["limit_bytes"], 8 << 20)
        self.assertIn("workspaces  each at most 8 MiB, 0 B idle, operations by another algorithm: 1", self.spillway("job", now["job"]).stdout)

        self.limit(now["job"], "any")
        large = self.await_offer(lambda bytes_: bytes_ > 8 << 20)
        self.assertGreater(large, 8 << 20, "the first choice of a job without a limit")
        self.await_tenancy(job, lambda now: now["workspaces"]["limit_bytes"] is None)

        self.limit(now["job"], "1MiB")
        self.assertLessEqual(self.await_offer(lambda bytes_: bytes_ <= 1 << 20), 1 << 20)
        self.finish(job)
        self.assertEqual(self.report()["other_algorithms"], 1, "one operation, however often it asked")

    def test_the_limit_outlives_the_agent_and_ends_with_its_terms(self):
        self.configure('[defaults]\nworkspace_limit = "1MiB"\n', usage_interval_ms=20)
        self.start()
        job = self.begin_asker()
        self.await_offer(lambda bytes_: 0 <= bytes_ <= 1 << 20)
        self.stop(signal.SIGKILL)
        self.assertLessEqual(self.await_offer(lambda bytes_: bytes_ >= 0), 1 << 20)
        self.configure(usage_interval_ms=20)
        self.start()
        self.assertGreater(self.await_offer(lambda bytes_: bytes_ > 1 << 20), 1 << 20)
        self.finish(job)

    def test_a_wrong_size_is_refused_with_the_reason(self):
        self.configure()
        self.start()
        for wrong in ("much", "25%", ""):
            refused = self.spillway("budget", "set", "local-1", "--workspace", wrong)
            self.assertEqual(refused.returncode, 2)
            self.assertIn("no size of a workspace", refused.stderr)


if __name__ == "__main__":
    agent_test.main()

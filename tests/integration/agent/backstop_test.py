#!/usr/bin/env python3
"""The driver's hard limit above a job's budget, by the simulated NVML and real control groups of
version 2: a program of the job that evades the preload is refused above it.

Needs root, and a hierarchy of version 2 where it may make groups.

    usage: backstop_test.py --build BUILD [unittest arguments]
"""
import os
import pathlib
import signal
import subprocess
import sys

import agent_test
import job_test

MIB = 1 << 20
UID = "0f0e0d0c-0000-4000-8000-{:012x}"
# Tries to hold that much, and prints the driver's answer.
EVADER = """
import ctypes, sys
driver = ctypes.CDLL("libcuda.so.1")
context, address = ctypes.c_void_p(), ctypes.c_uint64()
assert driver.cuInit(0) == 0
assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert driver.cuCtxSetCurrent(context) == 0
print(driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(int(sys.argv[1]))))
"""
OUT_OF_MEMORY = "2\n"


def hierarchy():
    """Where version 2 is mounted; None: nowhere."""
    for line in pathlib.Path("/proc/mounts").read_text().splitlines():
        _, place, kind, *_ = line.split()
        if kind == "cgroup2":
            return pathlib.Path(place)
    return None


class BackstopTest(job_test.JobFixture):
    def setUp(self):
        super().setUp()
        self.group = self.make_group()
        self.limits = self.folder / "limits"
        self.limits.write_text("")
        self.simulated = {"SPILLWAY_SIM_NODE": str(self.folder / "node"), "SPILLWAY_SIM_PROFILE": "h200",
                          "SPILLWAY_SIM_MEMORY_LIMITS": str(self.limits), "LD_LIBRARY_PATH": str(agent_test.BUILD / "simulator")}
        self.more_environment = {name: self.simulated[name] for name in ("SPILLWAY_SIM_NODE", "SPILLWAY_SIM_MEMORY_LIMITS")}
        self.set_up_agent("true")

    def make_group(self):
        place = hierarchy()
        if place is None or os.geteuid() != 0:
            self.skipTest("control groups of version 2, and root, are needed")
        pod = place / "kubepods" / f"pod{UID.format(os.getpid())}"
        self.named = f"/sys/fs/cgroup/kubepods/{pod.name}/{'a' * 64}"
        try:
            (pod / ("a" * 64)).mkdir(parents=True)
        except OSError as error:
            self.skipTest(f"no control group can be made here: {error}")
        for folder in (place / "kubepods", pod, pod / ("a" * 64)):
            self.addCleanup(self.remove_group, folder)
        return pod / ("a" * 64)

    @staticmethod
    def remove_group(folder):
        try:
            folder.rmdir()
        except OSError:
            pass  # another test's pods

    def set_up_agent(self, backstop):
        self.configure('[native_limits]\nbackstop = ' + backstop + '\nreserve = "128MiB"\n[defaults]\nlimit = "256MiB"\n')
        path = self.folder / "spillway.toml"
        path.write_text(path.read_text().replace("find = false", "find = true"))

    def in_pod(self, *command):
        """A command that joins the pod's group and becomes that program."""
        return ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(self.group), *command]

    def begin_joined(self):
        """`begin` starts its program as this process's child, so the child is moved before it learns of a GPU."""
        here = pathlib.Path(hierarchy()) / pathlib.Path("/proc/self/cgroup").read_text().rsplit("0::/", 1)[1].split("\n")[0]
        (self.group / "cgroup.procs").write_text(str(os.getpid()))
        try:
            return self.begin(job_test.ENDLESS, *self.follow("--no-learn"))
        finally:
            (here / "cgroup.procs").write_text(str(os.getpid()))

    def evade(self, size_bytes):
        """The driver's answer to a program of the pod that knows nothing of Spillway."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("SPILLWAY_")}
        program = subprocess.run(self.in_pod(sys.executable, "-c", EVADER, str(size_bytes)),
                                 env={**clean, **self.simulated, "SPILLWAY_SIM_COMPUTE": "tags"}, capture_output=True, text=True)
        self.assertEqual(program.returncode, 0, program.stderr)
        return program.stdout

    def in_force(self):
        """(soft, hard) of the pod's group; None: no limit."""
        for line in self.limits.read_text().splitlines():
            uuid, group, soft, hard = line.split()
            if (uuid, group) == (job_test.UUID, self.named):
                return int(soft), int(hard)
        return None

    def await_limit(self, is_it):
        seen = agent_test.wait_for(self.in_force, is_it)
        self.assertTrue(is_it(seen), f"{seen} {self.limits.read_text()}")
        return seen

    def begin_limited(self):
        job = self.begin_joined()
        tenancy = self.await_tenancy(job, lambda now: now["resident_bytes"] > 64 * MIB and (now["hard_limit"] or {}).get("state") == "set")
        self.assertTrue(tenancy["job"].startswith("pod-"), tenancy)
        return job

    def test_a_program_that_evades_the_preload_is_refused_above_the_jobs_hard_limit(self):
        self.start(**self.simulated)
        job = self.begin_limited()
        tenancy = self.await_tenancy(job, lambda now: now["budget_bytes"] <= 256 * MIB)
        soft, hard = self.in_force()
        self.assertEqual(soft, 0)
        self.assertTrue(128 * MIB <= hard <= (256 + 128 + 64) * MIB, hard)
        self.assertEqual(tenancy["hard_limit"]["bytes"], hard)
        self.assertEqual(self.evade(700 * MIB), OUT_OF_MEMORY)
        self.assertEqual(self.evade(32 * MIB), "0\n", "within the reserve")
        self.assertIn("backstop", self.spillway("job", tenancy["job"]).stdout)
        agent_test.wait_for(lambda: self.get("/metrics")[1], lambda text: 'spillway_hard_limits{state="set"} 1\n' in text)
        self.assertIn('spillway_hard_limits{state="set"} 1\n', self.get("/metrics")[1])

        # The budget and its limit rise and fall together, and the job computes the same.
        self.assertEqual(self.spillway("budget", "set", tenancy["job"], "96MiB").returncode, 0)
        self.await_limit(lambda now: now is not None and now[1] <= (96 + 128 + 64) * MIB)
        self.assertEqual(self.spillway("budget", "set", tenancy["job"], "512MiB").returncode, 0)
        self.await_tenancy(job, lambda now: now["limit_bytes"] == 512 * MIB)
        self.assert_as_bare(self.finish(job))
        self.await_limit(lambda now: now is None)

    def test_without_the_setting_the_same_program_is_not_refused(self):
        self.set_up_agent("false")
        self.start(**self.simulated)
        job = self.begin_joined()
        self.await_tenancy(job, lambda now: now["resident_bytes"] > 64 * MIB)
        self.assertEqual(self.evade(700 * MIB), "0\n")
        self.assertIsNone(self.in_force())
        self.finish(job)

    def test_the_next_agent_knows_the_limits_of_one_that_was_killed(self):
        self.start(**self.simulated)
        job = self.begin_limited()
        self.agent.send_signal(signal.SIGKILL)
        self.agent.wait()
        self.assertIsNotNone(self.in_force())
        self.assert_as_bare(self.finish(job))
        self.start(**self.simulated)
        self.await_limit(lambda now: now is None)

    def test_a_limit_that_somebody_else_set_stays(self):
        self.start(**self.simulated)
        job = self.begin_limited()
        self.limits.write_text(f"{job_test.UUID} {self.named} 0 {777 * MIB}\n")
        self.await_tenancy(job, lambda now: (now["hard_limit"] or {}).get("state") == "foreign")
        self.assert_as_bare(self.finish(job))
        self.assertEqual(self.in_force(), (0, 777 * MIB))

    def test_a_refusal_is_one_warning_and_the_job_goes_on(self):
        self.limits.chmod(0o444)
        self.start(**self.simulated)
        job = self.begin_joined()
        self.await_tenancy(job, lambda now: now["resident_bytes"] > 64 * MIB and (now["hard_limit"] or {}).get("state") == "refused")
        self.assert_as_bare(self.finish(job))
        warning = "the agent sets no hard limits: no permission"
        self.assertEqual(agent_test.wait_for(lambda: self.log().count(warning), lambda count: count > 0), 1)


if __name__ == "__main__":
    agent_test.main()

#!/usr/bin/env python3
"""A program without Spillway beside a job of the agent's, on one simulated GPU: the agent names it
while it is there.

    usage: unmanaged_test.py --build BUILD [unittest arguments]
"""
import json
import os
import pathlib
import re
import subprocess
import sys

import agent_test
import job_test

MIB = 1 << 20
HELD = 300 * MIB
# Holds memory until its standard input ends.
FOREIGN = f"""
import ctypes, sys
driver = ctypes.CDLL("libcuda.so.1")
context, address = ctypes.c_void_p(), ctypes.c_uint64()
assert driver.cuInit(0) == 0
assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert driver.cuCtxSetCurrent(context) == 0
assert driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t({HELD})) == 0
print("holds", flush=True)
sys.stdin.read()
"""


class UnmanagedTest(job_test.JobFixture):
    def setUp(self):
        super().setUp()
        self.simulated = {"SPILLWAY_SIM_NODE": str(self.folder / "node"), "SPILLWAY_SIM_PROFILE": "h200",
                          "LD_LIBRARY_PATH": str(agent_test.BUILD / "simulator")}
        self.more_environment = {"SPILLWAY_SIM_NODE": self.simulated["SPILLWAY_SIM_NODE"]}
        self.configure()
        path = self.folder / "spillway.toml"
        path.write_text(path.read_text().replace("find = false", "find = true")
                        .replace("[agent]\n", f'[agent]\njob_socket = "{self.folder}/jobs/agent.sock"\n', 1))

    def foreign(self):
        clean = {name: value for name, value in os.environ.items() if not name.startswith("SPILLWAY_")}
        program = subprocess.Popen([sys.executable, "-c", FOREIGN], env={**clean, **self.simulated, "SPILLWAY_SIM_COMPUTE": "tags"},
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.end, program)
        self.assertEqual(program.stdout.readline(), "holds\n")
        return program

    def device(self):
        return next(one for one in self.status()["devices"] if one["uuid"] == job_test.UUID)

    def await_unmanaged(self, held_bytes):
        """Within a few seconds."""
        return agent_test.wait_for(lambda: self.device()["unmanaged"], lambda seen: seen and seen["bytes"] == held_bytes)

    def test_a_program_past_the_agent_is_named_and_forgotten(self):
        self.start(**self.simulated)
        job = self.begin(job_test.ENDLESS, *self.follow("--no-learn"))
        self.await_tenancy(job, lambda now: now["resident_bytes"] > 0)
        self.assertEqual(self.await_unmanaged(0), {"bytes": 0, "processes": []})

        program = self.foreign()
        seen = self.await_unmanaged(HELD)
        self.assertEqual([one["pid"] for one in seen["processes"]], [program.pid])
        self.assertTrue(seen["processes"][0]["command"].startswith("python3"), seen)
        text = self.spillway("status").stdout
        self.assertIn("300 MiB is held by processes that the agent does not manage:\n", text)
        self.assertRegex(text, rf"300 MiB  pid {program.pid}  python3")
        line = f'spillway_gpu_memory_unmanaged_bytes{{gpu="{self.device()["device"]}",uuid="{job_test.UUID}"}} '
        agent_test.wait_for(lambda: self.get("/metrics")[1], lambda text: f"{line}{HELD}\n" in text)
        self.assertIn(f"{line}{HELD}\n", self.get("/metrics")[1])

        # A container learns of no other's processes.
        through_the_jobs = subprocess.run([agent_test.BUILD / "bin/spillway", "status", "--json", "--socket", self.folder / "jobs/agent.sock"],
                                          capture_output=True, text=True)
        self.assertEqual([one["unmanaged"] for one in json.loads(through_the_jobs.stdout)["devices"]], [None, None])

        program.stdin.close()
        program.wait()
        self.assertEqual(self.await_unmanaged(0), {"bytes": 0, "processes": []})
        self.finish(job)

    def test_a_job_stays_below_the_drivers_own_soft_limit(self):
        groups = pathlib.Path("/proc/self/cgroup").read_text()
        own = re.search(r"(?m)^0::(/.*)$", groups)
        if own is None:
            self.skipTest("no control groups of version 2 here")
        limits = self.folder / "limits"
        limits.write_text("")
        self.simulated["SPILLWAY_SIM_MEMORY_LIMITS"] = str(limits)
        self.start(**self.simulated)
        job = self.begin(job_test.ENDLESS, *self.follow("--no-learn"))
        self.await_tenancy(job, lambda now: now["resident_bytes"] > 64 * MIB)
        limits.write_text(f"{job_test.UUID} /sys/fs/cgroup{own[1]} {64 * MIB} 0\n")
        self.await_tenancy(job, lambda now: now["limit_bytes"] == 60 * MIB and 0 < now["resident_bytes"] <= 60 * MIB)
        limits.write_text("")
        self.await_tenancy(job, lambda now: now["resident_bytes"] > 64 * MIB)
        self.assert_as_bare(self.finish(job))

    def test_without_nvml_nothing_is_said(self):
        path = self.folder / "spillway.toml"
        path.write_text(path.read_text().replace("find = true", "find = false"))
        self.start(**self.simulated)
        self.assertIsNone(self.device()["unmanaged"])
        self.assertNotIn("spillway_gpu_memory_unmanaged_bytes{", self.get("/metrics")[1])


if __name__ == "__main__":
    agent_test.main()

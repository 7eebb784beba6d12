#!/usr/bin/env python3
"""A trainer on the simulated GPU under the real spillwayd: its grant, a smaller budget, an agent
that dies, the queue.

    usage: job_test.py --build BUILD [unittest arguments]
"""
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import time
import unittest
import uuid

import agent_test

MIB = 1 << 20
GRANULE = 2 * MIB
PATIENCE_S = 60
# The UUID of the simulated H200.
UUID = "GPU-73696d2d-6832-3030-0000-000000000000"
# At a width of 256 its tensors are movable ranges. Memory is sparse and kernels leave tags, so the
# run is quick.
TRAINER = ["gpt", "--layers=2", "--width=256"]
SHORT = "--steps=12"
# Runs until the test has seen its event; a fixed number of steps may end too early on a fast
# machine.
ENDLESS = "--steps=1000000"
GIB = 1 << 30
# Allocates and frees memory, waits until a file exists, then prints the results of three calls.
LATE_ALLOCATION = """
import ctypes, os, sys, time
driver = ctypes.CDLL("libcuda.so.1")
driver.cuInit(0)
context, address = ctypes.c_void_p(), ctypes.c_uint64()
driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
driver.cuCtxSetCurrent(context)
driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(64 << 20))
driver.cuMemFree_v2(address)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.05)
allocated = driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(64 << 20))
filled = driver.cuMemsetD8_v2(address, ctypes.c_ubyte(7), ctypes.c_size_t(64 << 20))
print(allocated, filled, driver.cuCtxSynchronize())
"""
IS_ADMITTED = "spillway: the job is admitted, and begins when others have given back memory for it\n"


class JobFixture(agent_test.AgentFixture):
    """Trainers under the test's own agent."""

    trainer = TRAINER
    more_environment = {}
    library_settings = ()  # a command that becomes the trainer: `spillway run` clears variables that it does not set

    def configure(self, more="", **settings):
        super().configure(f'[[device]]\nuuid = "{UUID}"\nmemory = "1GiB"\n' + more, **settings)

    def begin(self, length, *options, name=".", more=(), user=None, before=()):
        """A running trainer under `spillway run`; its output and report are in the test's folder
        of that name.

        `user`: runs as that user, who may write there; needs root. `before`: a command that
        becomes the trainer.
"""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        (folder / "end").unlink(missing_ok=True)
        environment = {key: value for key, value in os.environ.items() if not key.startswith("SPILLWAY_")}
        environment.update(XDG_STATE_HOME=str(folder), SPILLWAY_SIM_STATS=str(folder / "statistics.json"),
                           SPILLWAY_SIM_COMPUTE="tags")
        environment.update(self.more_environment)
        until = [f"--until={folder}/end"] if length == ENDLESS else []
        command = [*before, agent_test.BUILD / "bin/spillway", "run", "--quiet", "--simulate=h200", *options, "--",
                   *self.library_settings, agent_test.BUILD / "workloads" / self.trainer[0], *self.trainer[1:], length, *until,
                   *more]
        with open(folder / "output", "wb") as output, open(folder / "errors", "wb") as errors:
            who = {} if user is None else {"user": user, "group": user, "extra_groups": []}
            job = subprocess.Popen([str(word) for word in command], env=environment, stdout=output, stderr=errors, **who)
        self.addCleanup(self.end, job)
        return job

    @staticmethod
    def end(job):
        if job.poll() is None:
            job.kill()
            job.wait()

    def finish(self, job, name="."):
        """Its output; an endless one is told to end."""
        folder = self.folder / name
        (folder / "end").touch()
        code = job.wait(PATIENCE_S * 3)
        self.assertEqual(code, 0, self.errors(name))
        return (folder / "output").read_bytes()

    def assert_as_bare(self, output):
        """Whatever happened to the job, its output equals that of a bare run with as many steps."""
        steps = sum(line.startswith(b"step ") for line in output.splitlines())
        self.assertEqual(output, self.bare(f"--steps={steps}"))

    def errors(self, name="."):
        return (self.folder / name / "errors").read_text()

    def follow(self, *options):
        return "--park=off", f"--agent={self.path}", f"--report={self.folder}/report.json", *options

    def report(self):
        return json.loads((self.folder / "report.json").read_text())

    def statistics(self):
        return json.loads((self.folder / "statistics.json").read_text())

    def tenancy(self):
        """The agent's figures for the single job's device; None while there is no job."""
        for job in self.status()["jobs"]:
            for device in job["devices"]:
                return dict(device, job=job["job"])
        return None

    def await_tenancy(self, job, fits):
        deadline, tenancy = time.monotonic() + PATIENCE_S, None
        while time.monotonic() < deadline:
            self.assertIsNone(job.poll(), f"the job ended too early: {self.errors()}{tenancy}")
            tenancy = self.tenancy() or tenancy
            if tenancy is not None and fits(tenancy):
                return tenancy
            time.sleep(0.02)
        self.fail(f"did not come: {tenancy}")

    def bare(self, length):
        return self.finish(self.begin(length, "--off", name="bare"), "bare")

    def half(self):
        self.finish(self.begin(SHORT, f"--report={self.folder}/report.json"))
        return self.report()["wanted_peak_bytes"] // 2 // GRANULE * GRANULE


class JobTest(JobFixture):
    def test_a_running_job_obeys_a_smaller_budget_and_outlives_its_agent(self):
        half = self.half()
        self.start()

        job = self.begin(ENDLESS, *self.follow())
        tenancy = self.await_tenancy(job, lambda now: now["resident_bytes"] > half)
        self.assertEqual(tenancy["job"], f"local-{job.pid}")
        self.assertEqual(tenancy["budget_bytes"], 1024 * MIB)

        self.assertEqual(self.spillway("budget", "set", tenancy["job"], str(half)).returncode, 0)
        self.await_tenancy(job, lambda now: now["budgeted_bytes"] == half and 0 < now["resident_bytes"] <= half)

        self.stop(signal.SIGKILL)
        self.configure(f'[[rule]]\njob = "local-*"\nlimit = {half}\n', resume_ms=2000)
        self.start()
        tenancy = self.await_tenancy(job, lambda now: 0 < now["resident_bytes"] <= half)
        self.assertEqual((tenancy["job"], tenancy["budget_bytes"]), (f"local-{job.pid}", half))

        for _ in range(20):
            self.assertLessEqual(self.await_tenancy(job, lambda _: True)["resident_bytes"], half)
            time.sleep(0.05)
        self.assert_as_bare(self.finish(job))
        self.assertEqual(self.statistics()["violations"], [])
        report = self.report()
        self.assertGreater(report["offloaded_bytes"], 0)
        self.assertEqual(report["budget_bytes"], half)
        self.assertGreaterEqual(report["budget_changes"], 2)

    def begin_behind_a_late_job(self):
        """(the session of another job that was granted everything; the job, admitted and having
        printed that)"""
        self.start()
        late = agent_test.Session(self.path)
        self.addCleanup(late.socket.close)
        late.hello()
        late.register(1 << 30, device=uuid.UUID(UUID.removeprefix("GPU-")).bytes)
        late.next(agent_test.ADMISSION)
        self.assertEqual(late.grant()[1], 1 << 30)
        job = self.begin(SHORT, *self.follow())
        agent_test.wait_for(self.errors, lambda errors: errors)
        self.assertEqual(self.errors(), IS_ADMITTED)
        return late, job

    def test_an_admitted_job_waits_for_memory_of_late_jobs(self):
        # Regression: it began after 5 s with the launcher's budget, beside the memory budgeted to
        # the late job.
        late, job = self.begin_behind_a_late_job()
        device = next(d for j in self.status()["jobs"] for d in j["devices"] if j["job"] == f"local-{job.pid}")
        self.assertEqual((device["resident_bytes"], device["budgeted_bytes"]), (0, 0))

        while late.is_answered(0):
            serial, budget, _, _ = late.grant()
        late.obey(serial, budget)
        self.assert_as_bare(self.finish(job))

    def test_an_admitted_job_waits_for_a_restarted_agent(self):
        # Regression: it began at once with the launcher's budget.
        _, job = self.begin_behind_a_late_job()
        self.stop(signal.SIGKILL)
        time.sleep(2)
        self.assertEqual(self.errors(), IS_ADMITTED)

        self.start()
        self.assert_as_bare(self.finish(job))
        self.assertEqual(self.errors(), IS_ADMITTED)

    def test_a_grant_is_never_exceeded_from_the_first_allocation_on(self):
        bare = self.bare(SHORT)
        half = self.half()
        self.configure(f"[defaults]\nlimit = {half}\n")
        self.start()

        self.assertEqual(self.finish(self.begin(SHORT, *self.follow())), bare)
        self.assertLessEqual(self.statistics()["device_bytes_peak"], half)

    def test_the_launchers_budget_is_the_jobs_own_limit(self):
        half = self.half()
        self.start()
        job = self.begin(ENDLESS, *self.follow(f"--budget={half}"))
        self.assertEqual(self.await_tenancy(job, lambda now: now["budget_bytes"] > 0)["budget_bytes"], half)

    def test_limits_of_other_systems_lower_a_grant_and_never_raise_it(self):
        self.configure(f"[defaults]\nlimit = {72 * MIB}\n")
        self.start()
        for name, limit_bytes, budget in (("CUDA_DEVICE_MEMORY_LIMIT_0", 64 * MIB, 60 * MIB), ("CUDA_MEM_LIMIT", 640 * MIB, 72 * MIB),
                                          ("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", f"0={64 * MIB}", 60 * MIB)):
            self.more_environment = {name: str(limit_bytes)}
            job = self.begin(ENDLESS, *self.follow())
            self.assertEqual(self.await_tenancy(job, lambda now: now["budget_bytes"] > 0)["budget_bytes"], budget, name)
            self.end(job)
            agent_test.wait_for(lambda: self.status()["jobs"], lambda jobs: not jobs)

    def test_limits_of_other_systems_are_a_jobs_budget_without_an_agent(self):
        bare = self.bare(SHORT)
        self.more_environment = {"NVIDIA_GPU_MEMORY_REQUEST": "64", "NVIDIA_GPU_MEMORY_LIMIT": "96"}
        self.assertEqual(self.finish(self.begin(SHORT, f"--report={self.folder}/report.json")), bare)
        self.assertEqual(self.report()["budget_source"], "NVIDIA_GPU_MEMORY_REQUEST=64")
        self.assertLessEqual(self.statistics()["device_bytes_peak"], 60 * MIB)

    def test_a_job_without_an_agent_reports_it_and_runs(self):
        bare = self.bare(SHORT)
        self.assertEqual(self.finish(self.begin(SHORT, *self.follow())), bare)
        self.assertEqual(self.errors().count("is not there or does not take this job"), 1)

    def test_a_queued_job_begins_when_the_node_resumes(self):
        bare = self.bare(SHORT)
        self.start()
        self.assertEqual(self.spillway("drain").returncode, 0)
        job = self.begin(SHORT, *self.follow())
        self.await_tenancy(job, lambda now: now["state"] == "waiting")
        self.assertEqual(self.tenancy()["resident_bytes"], 0)

        self.assertEqual(self.spillway("undrain").returncode, 0)
        self.assertEqual(self.finish(job), bare)
        self.assertEqual(self.errors().count("waits in the agent's queue"), 1)

    def test_a_queued_job_with_a_hanging_agent_reports_it_and_runs(self):
        # Regression: it waited for an hour, and began without memory.
        self.start()
        self.assertEqual(self.spillway("drain").returncode, 0)
        job = self.begin(SHORT, *self.follow())
        self.await_tenancy(job, lambda now: now["state"] == "waiting")

        self.agent.send_signal(signal.SIGSTOP)
        self.addCleanup(lambda: self.agent.send_signal(signal.SIGCONT))
        self.assert_as_bare(self.finish(job))
        self.assertEqual(self.errors().count("which the job waits for, does not answer; the budget of `spillway run` stands"), 1)

    def test_a_rate_limited_job_retries_and_follows_the_agent(self):
        # Regression: it began at once with the launcher's budget, beside memory budgeted to others.
        self.configure("[limits]\nconnections_per_second_per_user = 1\n")
        self.start()
        job = self.begin(SHORT, *self.follow())
        begun = time.monotonic()
        while time.monotonic() < begun + 1.5:  # the job gives up after 5, on a busy machine too
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as other:
                other.connect(str(self.path))
            time.sleep(0.02)
        self.assert_as_bare(self.finish(job))
        self.assertNotIn("is not there", self.errors())

    def test_a_reload_changes_a_running_jobs_budget_or_nothing(self):
        half = self.half()
        self.start()
        job = self.begin(ENDLESS, *self.follow())
        tenancy = self.await_tenancy(job, lambda now: now["resident_bytes"] > half)
        self.configure(f"[defaults]\nlimit = {half}\n")
        self.assertEqual(self.spillway("config", "reload").returncode, 0)
        self.await_tenancy(job, lambda now: now["budgeted_bytes"] == half and 0 < now["resident_bytes"] <= half)

        self.configure(f"[defaults]\nlimit = {tenancy['budget_bytes']}\nwieght = 3\n")
        line = (self.folder / "spillway.toml").read_text().splitlines().index("wieght = 3") + 1
        why = f"spillway.toml:{line}: there is no setting 'wieght'; do you mean 'weight'?"
        refused = self.spillway("config", "reload")
        self.assertEqual(refused.returncode, 3)
        self.assertIn(why, refused.stderr)
        said = self.log()
        self.agent.send_signal(signal.SIGHUP)
        self.assertIn(why, agent_test.wait_for(lambda: self.log()[len(said):], lambda log: "wieght" in log))
        self.assertFalse(self.status()["last_reload_succeeded"])
        self.assertEqual(self.tenancy()["budget_bytes"], half)

        self.configure(f"[defaults]\nlimit = {tenancy['budget_bytes']}\n")
        self.agent.send_signal(signal.SIGHUP)
        self.await_tenancy(job, lambda now: now["resident_bytes"] > half)
        self.assert_as_bare(self.finish(job))
        self.assertEqual(self.statistics()["violations"], [])

    # Regression: its allocations were refused, because it had lent all its memory.
    def test_a_waking_job_without_memory_waits_for_its_memory(self):
        self.configure("[defaults]\nfloor = 0\n")
        self.start()
        folder = self.folder / "late"
        folder.mkdir()
        (folder / "late.py").write_text(LATE_ALLOCATION)
        command = [agent_test.BUILD / "bin/spillway", "run", "--quiet", "--simulate=h200", *self.follow(), "--", sys.executable,
                   folder / "late.py", folder / "go"]
        with open(self.folder / "errors", "wb") as errors:
            job = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=errors, text=True,
                                   env=dict(os.environ, XDG_STATE_HOME=str(folder)))
        self.addCleanup(self.end, job)
        self.await_tenancy(job, lambda now: now["budget_bytes"] > 0 and not now["active"])
        worker = agent_test.Session(self.path)
        worker.hello()
        worker.say(agent_test.REGISTER, struct.pack("<I16s6q", 0, uuid.UUID(UUID.removeprefix("GPU-")).bytes, GIB, GIB, 0, 0, 0, 0))
        worker.next(agent_test.ADMISSION)

        def work(until):
            while not until():
                if worker.is_answered(0.05):
                    serial, budget, _, _ = worker.grant()
                    worker.obey(serial, budget)
                    worker.say(agent_test.USAGE, struct.pack("<IBB10q", 0, 1, 3, GIB, budget, *[0] * 8))

        began = time.monotonic()
        work(lambda: self.budgets()[0] == 0 or time.monotonic() - began > PATIENCE_S)
        self.assertEqual(self.budgets()[0], 0)
        (folder / "go").touch()
        work(lambda: job.poll() is not None or time.monotonic() - began > 2 * PATIENCE_S)
        self.assertEqual((job.wait(1), job.stdout.read()), (0, "0 0 0\n"))
        job.stdout.close()

    def budgets(self):
        return [device["budget_bytes"] for one in self.status()["jobs"] for device in one["devices"]]


# Another program runs the fixture's own tests.
del agent_test.AgentTest

if __name__ == "__main__":
    agent_test.main()

#!/usr/bin/env python3
"""Nodes that run out of disk, files, memory or threads, for the real spillwayd and a trainer
under it. Both continue with less, report it once, and recover when the resource is back.

    usage: shortage_test.py --build BUILD [unittest arguments]
"""
import os
import pathlib
import re
import resource
import struct
import subprocess
import time

import agent_test
import job_test
import plan_test

MIB, GIB = 1 << 20, 1 << 30
SLAB = 2 * MIB
HOST = f'[host]\nmemory = "1GiB"\nslab = {SLAB}\nhuge_pages = false\n'
ENDLESS = job_test.ENDLESS
MEMORY_GROUPS = pathlib.Path("/sys/fs/cgroup/memory")
SHIM = "tests-bin/libfailing_thread.so"


class ShortageFixture(job_test.JobFixture):
    def small_disk(self, size_bytes=64 << 10):
        """A file system of its own with this capacity."""
        disk = self.folder / "disk"
        disk.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "none", disk], capture_output=True).returncode:
            self.skipTest("no file system can be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", disk], check=True)
        return disk

    @staticmethod
    def enlarge(disk):
        subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)

    def metric(self, name):
        found = re.search(rf"(?m)^{name}(?:{{[^}}]*}})? (\S+)$", self.get("/metrics")[1])
        return float(found[1]) if found else None

    def await_metric(self, name, fits):
        value = agent_test.wait_for(lambda: self.metric(name), lambda value: value is not None and fits(value))
        self.assertTrue(value is not None and fits(value), (name, value, self.log()))

    def await_log(self, text, count=1):
        agent_test.wait_for(self.log, lambda log: log.count(text) >= count)
        self.assertEqual(self.log().count(text), count, self.log())


class PlansTest(plan_test.PlanFixture, ShortageFixture):
    def test_a_full_disk_stores_no_plans_until_it_has_space_again(self):
        disk = self.small_disk(4 << 10)
        (disk / "all").write_bytes(bytes(4096))
        self.serve(f"store = '{disk}/plans'\n")

        for name in ("first", "second"):
            self.assertGreater(self.run_job(name)["plans_from_agent"], 0)
        self.await_log("plans are not kept")
        self.await_metric("spillway_plan_store_write_failures_total", lambda count: count >= 2)
        self.assertEqual(self.metric("spillway_plan_store_plans"), 0)

        (disk / "all").unlink()
        self.enlarge(disk)
        self.run_job("third")
        self.await_log("plans are kept again")
        self.await_metric("spillway_plan_store_plans", lambda count: count >= 1)


class AgentTest(ShortageFixture):
    def test_slabs_are_made_once_memory_is_available_again(self):
        half = self.half()
        self.configure(HOST.replace(str(SLAB), str(32 * MIB)) + f"[defaults]\nlimit = {half}\n")
        self.start()
        self.limit_addresses(12 * MIB)

        job = self.begin(ENDLESS, *self.follow())
        self.await_metric("spillway_pool_not_made_total", lambda count: count > 0)
        self.await_tenancy(job, lambda now: now["to_device_bytes"] > 0)  # it pins its own
        self.assertEqual(self.status()["host"]["pool"]["leased_bytes"], 0)
        self.limit_addresses(None)
        self.assertGreater(agent_test.wait_for(lambda: self.status()["host"]["pool"]["leased_bytes"], bool), 0)

        self.assert_as_bare(self.finish(job))
        self.assertEqual(self.stop(), 0)

    def test_an_agent_without_memory_keeps_its_sessions_and_recovers(self):
        self.configure("[defaults]\nlimit = '1GiB'\n[limits]\nsessions_per_user = 4096\nconnections_per_second_per_user = 100000\n")
        self.start(MALLOC_ARENA_MAX="1")  # a thread's arena reserves 64 MiB of addresses, enough for more sessions than files
        served = agent_test.Session(self.path)
        served.hello()
        served.register(GIB)
        served.next(agent_test.ADMISSION)
        self.assertGreater(served.grant()[1], 0)
        self.limit_addresses(0)

        self.addCleanup(lambda: [one.socket.close() for one in crowd])
        crowd = []
        while not self.is_short():
            self.assertLess(len(crowd), 900)
            crowd.append(agent_test.Session(self.path))
            crowd[-1].say(agent_test.HELLO, struct.pack("<HHBi", 1, 1, 1, 0))
            agent_test.wait_for(lambda: crowd[-1].is_answered(0.1) or self.is_short(), bool)
        self.assertEqual(self.spillway("status").returncode, 4)
        self.await_log("no memory left for new sessions")
        served.say(agent_test.USAGE, struct.pack("<IBB10q", 0, 1, 2, GIB, GIB, 0, 0, 0, 0, 0, 4711, 0, 0))
        self.await_metric("spillway_job_steps_total", lambda steps: steps == 4711)

        self.limit_addresses(None)
        self.await_log("there is memory again")
        self.assertEqual(self.spillway("status").returncode, 0)
        self.assertEqual(self.stop(), 0)

    def is_short(self):
        return "no memory left: the agent goes on with what it has" in self.log()

    def limit_addresses(self, more_bytes):
        """Limits the agent's address space to its current size plus this; None: no limit."""
        used = int(open(f"/proc/{self.agent.pid}/statm").read().split()[0]) * os.sysconf("SC_PAGESIZE")
        most = resource.RLIM_INFINITY if more_bytes is None else used + more_bytes
        resource.prlimit(self.agent.pid, resource.RLIMIT_AS, (most, resource.prlimit(self.agent.pid, resource.RLIMIT_AS)[1]))

    def test_without_descriptors_jobs_pin_their_own_memory_and_new_ones_are_refused(self):
        half = self.half()
        self.configure(HOST + f"[defaults]\nlimit = {half}\n")
        self.start()
        job = self.begin(ENDLESS, *self.follow())
        self.await_tenancy(job, lambda now: now["budget_bytes"] > 0)
        used = self.files_at_rest()
        files = min(set(range(len(used) + 1)) - used)  # so that no lower number is free
        most = resource.prlimit(self.agent.pid, resource.RLIMIT_NOFILE)[1]
        resource.prlimit(self.agent.pid, resource.RLIMIT_NOFILE, (files, most))

        self.assertNotEqual(self.spillway("status").returncode, 0)
        self.await_log("no file descriptors left")
        resource.prlimit(self.agent.pid, resource.RLIMIT_NOFILE, (most, most))
        self.assertEqual(self.spillway("status").returncode, 0)
        self.await_tenancy(job, lambda now: now["to_device_bytes"] > 0)

        self.assert_as_bare(self.finish(job))

    # Regression: where the last descriptor took a connection and none was left for its process, it
    # was closed silently.
    def test_refusals_are_reported_however_few_descriptors_are_left(self):
        for left in range(4):
            self.start()
            used = self.files_at_rest()
            files = min(set(range(len(used) + 1)) - used) + left
            resource.prlimit(self.agent.pid, resource.RLIMIT_NOFILE, (files, files))
            crowd = [agent_test.Session(self.path) for _ in range(4)]
            self.await_log("no file descriptors left", left + 1)
            for one in crowd:
                one.socket.close()
            self.stop()

    def files_at_rest(self):
        """The agent's descriptors, once it has closed those of the last command: unchanged for a
        while."""
        seen = []

        def look():
            seen.append({int(file) for file in os.listdir(f"/proc/{self.agent.pid}/fd")})
            return seen

        agent_test.wait_for(look, lambda seen: len(seen) >= 10 and all(files == seen[-1] for files in seen[-10:]))
        return seen[-1]


class JobTest(ShortageFixture):
    def serve_half(self, more=""):
        half = self.half()
        self.configure(HOST + f"[defaults]\nlimit = {half}\n" + more)
        self.start()
        return half

    def test_a_job_finishes_when_a_full_disk_takes_no_report_trace_or_plans(self):
        disk = self.small_disk(4 << 10)
        (disk / "all").write_bytes(bytes(4096))
        bare = self.bare(job_test.SHORT)
        self.serve_half()

        self.assertEqual(self.finish(self.begin(job_test.SHORT, "--park=off", f"--agent={self.path}", f"--report={disk}/report",
                                                f"--trace={disk}/trace", f"--plan-store={disk}/plans")), bare)
        self.assertIn("No space left on device", self.errors())

    def test_a_job_with_few_files_finishes(self):
        bare = self.bare(job_test.SHORT)
        self.serve_half()

        job = self.begin(job_test.SHORT, *self.follow(), before=["prlimit", "--nofile=24:24"])

        self.assertEqual(self.finish(job), bare)
        self.assertEqual(self.statistics()["violations"], [])

    def with_failing_thread(self, number):
        self.more_environment = {"LD_PRELOAD": str(agent_test.BUILD / SHIM), "FAILING_THREAD": str(number)}
        job = self.begin(ENDLESS, *self.follow())
        self.more_environment = {}
        return job

    def test_without_its_shrink_thread_a_job_still_meets_a_smaller_budget(self):
        half = self.half()
        self.configure(HOST)
        self.start()
        job = self.with_failing_thread(1)
        tenancy = self.await_tenancy(job, lambda now: now["resident_bytes"] > half)

        self.assertEqual(self.spillway("budget", "set", tenancy["job"], str(half)).returncode, 0)

        self.await_tenancy(job, lambda now: 0 < now["resident_bytes"] <= half == now["budgeted_bytes"])
        self.assert_as_bare(self.finish(job))

    def test_without_its_lease_thread_a_job_starts_at_once_with_its_own_budget(self):
        self.serve_half()
        begin = time.monotonic()
        self.bare(job_test.SHORT)
        bare_s, begin = time.monotonic() - begin, time.monotonic()
        job = self.with_failing_thread(2)

        agent_test.wait_for(self.errors, lambda errors: "is not there" in errors)
        self.assertLess(time.monotonic() - begin, 4 + bare_s, "it waited for an answer")
        self.assert_as_bare(self.finish(job))
        self.assertIn("does not take this job", self.errors())


class ControlGroupTest(ShortageFixture):
    """A job that wants 810 MiB, on a device of half that size, in a control group with less than
    the rest."""

    trainer = ["gpt", "--layers=4", "--width=1024"]

    def test_without_control_group_memory_the_program_gets_an_error_and_is_not_killed(self):
        group = MEMORY_GROUPS / f"spillway-shortage-{os.getpid()}"
        try:
            group.mkdir()
        except OSError as error:
            self.skipTest(f"no control group of its own: {error}")
        self.addCleanup(group.rmdir)
        half = self.half()
        self.configure(HOST + f"[defaults]\nlimit = {half}\nhost_limit = {SLAB}\n")
        self.start()
        join = ["sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh"]
        (group / "memory.limit_in_bytes").write_text(str(half * 2 // 3))

        job = self.begin(job_test.SHORT, *self.follow(), before=join)

        self.assertEqual(job.wait(job_test.PATIENCE_S), 1, self.errors())
        self.assertIn("out of memory", self.errors())
        self.assertGreater(self.report()["refused_allocations"], 0)
        (group / "memory.limit_in_bytes").write_text(str(half * 4))
        self.assertEqual(self.finish(self.begin(job_test.SHORT, *self.follow(), before=join)), self.bare(job_test.SHORT))


if __name__ == "__main__":
    agent_test.main()

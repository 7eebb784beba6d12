#!/usr/bin/env python3
"""Trainers whose plans the real spillwayd makes: its workers, its store, and the failures of
both.

    usage: plan_test.py --build BUILD [unittest arguments]
"""
import array
import json
import os
import pathlib
import re
import signal
import socket
import struct
import sys
import threading
import time
import unittest

import agent_test
import job_test

ASK_PLAN, PLAN_REPLY, RECALL_PLANS, RECALLED_PLANS = 21, 22, 23, 24
MADE, KEPT, NONE, REFUSED, BUSY, EXPIRED, FAILED, NOT_HERE = range(1, 9)
VERSION = 3
MOST_PLAN_BYTES = 64 << 20
SEALS = 0x2 | 0x4 | 0x8  # shrink, grow, write
F_ADD_SEALS = 1033
PATIENCE_S = 60
STEPS = "--steps=16"


def sealed(size, content=b""):
    import fcntl
    file = os.memfd_create("request", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(file, size)
    os.pwrite(file, content, 0)
    fcntl.fcntl(file, F_ADD_SEALS, SEALS)
    return file


def workers_of(agent):
    """The pids of the agent's children."""
    found = set()
    for task in pathlib.Path(f"/proc/{agent.pid}/task").iterdir():
        try:
            found.update(int(pid) for pid in (task / "children").read_text().split())
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


class Watcher:
    """Acts on every worker of the agent as soon as it exists; a worker lives for many of these
    turns."""

    TURN_S = 0.0005  # without a pause it takes a processor from the trainer

    def __init__(self, agent, act):
        self.agent, self.act = agent, act
        self.seen, self.is_over = set(), False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.is_over:
            for pid in workers_of(self.agent) - self.seen:
                try:
                    self.act(pid)
                    self.seen.add(pid)
                except ProcessLookupError:
                    pass
            time.sleep(self.TURN_S)

    def end(self):
        self.is_over = True
        self.thread.join()
        return self.seen


class Stranger(agent_test.Session):
    """A job's side of a session of protocol version 3, byte by byte, on the trainers' device."""

    def __init__(self, path):
        super().__init__(path)
        self.frame(agent_test.HELLO, struct.pack("<HHBi", VERSION, VERSION, 1, 0))
        self.next(agent_test.WELCOME)
        device = bytes.fromhex(job_test.UUID[4:].replace("-", ""))
        self.frame(agent_test.REGISTER, struct.pack("<I16s6q", 0, device, 1 << 30, 1 << 20, 0, 0, 0, 0))

    def frame(self, kind, body, files=()):
        data = (struct.pack("<4sHHII", b"SPWY", VERSION, kind, 256, 0) + body).ljust(256, b"\0")
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))] if files else []
        self.socket.sendmsg([data], ancillary)

    def ask(self, ticket, size, files, budget=1 << 29):
        self.frame(ASK_PLAN, struct.pack("<IQQQQqIQ", 0, ticket, 1, 2, 3, budget, 20000, size), files)

    def reply(self):
        """ticket, outcome, reason"""
        while True:
            data = self.socket.recv(300)
            if not data:
                raise EOFError
            kind = struct.unpack_from("<H", data, 6)[0]
            if kind == agent_test.ERROR:
                raise EOFError(data[16:])
            if kind == PLAN_REPLY:
                _, ticket, outcome, _, _ = struct.unpack_from("<IQBQq", data, 16)
                return ticket, outcome, data[16 + 29:].split(b"\0")[0].decode()


class PlanFixture(job_test.JobFixture):
    # Actions beside a trainer happen while it is paused; otherwise it may end too early.
    trainer = ["gpt", "--layers=2", "--width=384", "--batch=1", "--sequence=16"]
    library_settings = ["env", "SPILLWAY_LEARN=wait"]  # else a quick trainer ends before it is planned

    known = None  # the trainer's budget and output

    def setUp(self):
        super().setUp()
        if PlanFixture.known is None:
            expected = self.finish(self.begin(STEPS, f"--report={self.folder}/report.json"))
            budget = self.report()["wanted_peak_bytes"] * 7 // 10 // job_test.GRANULE * job_test.GRANULE
            PlanFixture.known = budget, expected
        self.budget, self.expected = PlanFixture.known

    def serve(self, planning="", **settings):
        self.configure(f"[defaults]\nlimit = {self.budget}\n[planning]\n{planning}", **settings)
        self.start()

    def run_job(self, name):
        """Runs it with a home of its own, so it keeps nothing that the next one finds; returns
        what it learned, by its report."""
        job = self.begin(STEPS, "--park=off", f"--agent={self.path}", f"--report={self.folder}/{name}.json", name=name)
        self.assertEqual(self.finish(job, name), self.expected)
        return json.loads((self.folder / f"{name}.json").read_text())["learning"]

    def planning(self):
        return self.status()["planning"]

    def await_planning(self, fits):
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            planning = self.planning()
            if fits(planning):
                return planning
            time.sleep(0.02)
        self.fail(f"did not come: {planning}")

    def plans(self):
        return sorted(pathlib.Path(f"{self.path}.plans").glob("*/*.plan"))


class MetricsTest(PlanFixture):
    def samples(self, family):
        """Label values of a metric family's series -> value."""
        found = re.findall(rf"(?m)^{family}{{(.*)}} (\S+)$", self.get("/metrics")[1])
        return {frozenset(re.findall(r'="([^"]*)"', labels)): float(value) for labels, value in found}

    def value(self, family, *words):
        return sum(value for labels, value in self.samples(family).items() if set(words) <= labels)

    def await_value(self, family, *words):
        value = agent_test.wait_for(lambda: self.value(family, *words), bool, PATIENCE_S)
        self.assertGreater(value, 0, (family, words))

    def test_a_planned_jobs_activity_is_shown(self):
        self.serve(usage_interval_ms=50)
        job = self.begin(job_test.ENDLESS, "--park=off", f"--agent={self.path}")
        for family, *words in (("spillway_job_prefetches_total", "hit"), ("spillway_job_step_seconds_count",),
                               ("spillway_job_transfer_bytes_total", "to_host", "planned"),
                               ("spillway_job_transfer_bytes_total", "to_device", "planned"),
                               ("spillway_job_transfer_bytes_total", "to_device", "demand"),
                               ("spillway_job_allocations_over_budget_total",)):
            self.await_value(family, *words)
        self.assertEqual(self.value("spillway_job_transfer_bytes_total", "unknown"), 0)

        self.change_budget_until_replanned(job)
        (self.folder / "end").touch()
        self.assertEqual(job.wait(PATIENCE_S), 0, self.errors())

    def change_budget_until_replanned(self, job):
        """A plan that drift asked for at that time serves the new budget too."""
        family, word = "spillway_job_replans_total", "budget_change"
        for percent in (110, 100, 110, 100, 110):
            budget = self.budget * percent // 100
            self.assertEqual(self.spillway("budget", "set", f"local-{job.pid}", str(budget)).returncode, 0)
            if agent_test.wait_for(lambda: self.value(family, word), bool, 5) > 0:
                return
        self.fail("the changed budgets were not planned for")


class PlanTest(PlanFixture):
    def test_a_job_is_planned_by_a_worker(self):
        self.serve()

        learned = self.run_job("job")

        self.assertGreaterEqual(learned["plans_adopted"], 1, learned)
        self.assertGreaterEqual(learned["plans_from_agent"], 1)
        planning = self.planning()
        self.assertGreaterEqual(planning["requests"]["made"], 1)
        self.assertEqual(planning["requests"]["failed"], 0)
        self.assertGreaterEqual(len(self.plans()), 1)

    def test_a_repeated_job_is_planned_in_its_second_iteration(self):
        self.serve()
        first = self.run_job("today")
        self.stop()
        self.start()

        second = self.run_job("tomorrow")

        self.assertEqual(first["plans_from_store"], 0)
        self.assertGreaterEqual(second["plans_from_store"], 1)
        self.assertGreater(first["planned_at_iteration"], 2)
        self.assertLessEqual(second["planned_at_iteration"], 2)
        self.assertGreaterEqual(self.planning()["recalls"]["found"], 1)

    def test_damaged_plans_are_discarded_with_a_log_line_and_replaced(self):
        self.serve()
        self.run_job("today")
        damaged = self.plans()
        for path in damaged:
            path.write_bytes(path.read_bytes()[:-7])

        self.run_job("tomorrow")

        self.assertEqual(self.log().count("is discarded: it is damaged"), len(damaged))
        self.assertEqual(self.planning()["store"]["damaged"], len(damaged))

    def test_an_agent_that_does_not_plan_leaves_it_to_the_job(self):
        self.serve("workers = 0\n")
        learned = self.run_job("job")
        self.assertEqual(learned["plans_from_agent"], 0)
        self.assertGreaterEqual(learned["plans_adopted"], 1, learned)


class BrokenWorkerTest(PlanFixture):
    def assert_planned_alone(self, learned):
        self.assertEqual(learned["plans_from_agent"], 0)
        self.assertGreaterEqual(learned["plans_adopted"], 1, learned)

    def test_killed_workers(self):
        self.serve()
        watcher = Watcher(self.agent, lambda pid: os.kill(pid, signal.SIGKILL))
        learned = self.run_job("job")
        killed = watcher.end()

        self.assertGreaterEqual(len(killed), 1)
        if learned["plans_from_agent"] > 0:
            self.skipTest("a worker was quicker than its killer")
        self.assert_planned_alone(learned)
        self.assertGreaterEqual(self.planning()["requests"]["failed"], 1)

    def test_workers_without_time(self):
        self.serve("time_limit_ms = 1\n")
        self.assert_planned_alone(self.run_job("job"))
        self.assertGreaterEqual(self.planning()["requests"]["failed"], 1)
        self.assertIn("longer than 1 ms", self.log())

    def test_stopped_workers_do_not_stop_the_loop(self):
        self.serve("time_limit_ms = 1000\n")

        def stop_it(pid):
            self.await_confined(pid)
            os.kill(pid, signal.SIGSTOP)

        watcher = Watcher(self.agent, stop_it)
        learned = self.run_job("job")
        slowest_s = 0.0
        for _ in range(20):
            begin = time.monotonic()
            self.status()
            slowest_s = max(slowest_s, time.monotonic() - begin)
        self.await_planning(lambda planning: planning["running"] == 0)
        watcher.end()

        self.assertLess(slowest_s, 5)
        if learned["plans_from_agent"] == 0:
            self.assert_planned_alone(learned)
            self.assertGreaterEqual(self.planning()["requests"]["failed"], 1)
        self.assertEqual(workers_of(self.agent), set())

    def test_a_dying_agent_ends_its_workers(self):
        self.serve("time_limit_ms = 600000\n")
        stopped = []

        def stop_it_and_kill_the_agent(pid):
            self.await_confined(pid)
            os.kill(pid, signal.SIGSTOP)
            stopped.append(pid)
            self.agent.send_signal(signal.SIGKILL)

        watcher = Watcher(self.agent, stop_it_and_kill_the_agent)
        try:
            learned = self.run_job("job")
        finally:
            watcher.end()
        self.agent.wait(PATIENCE_S)
        self.agent = None

        self.assertGreaterEqual(len(stopped), 1)
        self.assert_planned_alone(learned)
        deadline = time.monotonic() + 10
        while any(self.is_alive(pid) for pid in stopped) and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertFalse([pid for pid in stopped if self.is_alive(pid)])

    @staticmethod
    def await_confined(pid):
        """Waits until it has given up its rights; it may have ended by then."""
        try:
            while "Seccomp:\t2" not in pathlib.Path(f"/proc/{pid}/status").read_text():
                pass
        except FileNotFoundError as gone:
            raise ProcessLookupError from gone

    @staticmethod
    def is_alive(pid):
        try:
            return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
        except (FileNotFoundError, ProcessLookupError):
            return False


class HostileTest(PlanFixture):
    def test_arbitrary_bytes_disturb_no_other_client(self):
        self.serve()
        stranger = Stranger(self.path)
        cases = [
            (7, [sealed(7, b"request")]),
            (MOST_PLAN_BYTES, [sealed(MOST_PLAN_BYTES)]),
            (MOST_PLAN_BYTES, [sealed(MOST_PLAN_BYTES, b"SPILLORD\6\0\0\0")]),
            (7, []),
            (8, [sealed(7)]),
            (7, [sealed(7), sealed(7)]),
            (4096, [os.memfd_create("not sealed", os.MFD_CLOEXEC)]),
            (1, [os.open("/dev/zero", os.O_RDONLY)]),
        ]
        for ticket, (size, files) in enumerate(cases):
            stranger.ask(ticket, size, files)
            self.assertEqual(stranger.reply()[:2], (ticket, REFUSED))
            for file in files:
                os.close(file)

        learned = self.run_job("job")
        self.assertGreaterEqual(learned["plans_from_agent"], 1)
        self.assertEqual(self.planning()["requests"]["refused"], 3, "three were read by workers, no more")

    def test_a_flood_of_huge_requests_is_answered_and_delays_no_other(self):
        self.serve("workers = 1\nqueue_per_user = 2\n")
        stranger = Stranger(self.path)
        huge = sealed(MOST_PLAN_BYTES, b"SPILLORD\6\0\0\0")
        for ticket in range(40):
            stranger.ask(ticket, MOST_PLAN_BYTES, [huge])
        begin = time.monotonic()
        self.status()
        self.assertLess(time.monotonic() - begin, 2)

        outcomes = sorted(stranger.reply()[:2] for _ in range(40))

        self.assertEqual([ticket for ticket, _ in outcomes], list(range(40)))
        self.assertLessEqual({outcome for _, outcome in outcomes}, {REFUSED, BUSY})
        self.assertIn(BUSY, [outcome for _, outcome in outcomes])

    def test_plans_of_one_user_are_hidden_from_others(self):
        if os.getuid() != 0:
            self.skipTest("takes root, to be two users")
        self.serve()
        self.run_job("job")
        self.folder.chmod(0o755)
        owners = {path.parent.name for path in self.plans()}
        self.assertEqual(owners, {"user-0"})
        program = int(self.plans()[0].name.split("-")[0], 16)

        self.assertEqual(self.recalled_as(0, program), 1)
        self.assertEqual(self.recalled_as(65534, program), 0)

    def recalled_as(self, uid, program):
        """The number of plans of a program that a process of this user can recall."""
        pid = os.fork()
        if pid == 0:
            count = 99
            try:
                os.setresuid(uid, uid, uid)
                stranger = Stranger(self.path)
                stranger.frame(RECALL_PLANS, struct.pack("<IQ", 0, program))
                while True:
                    data = stranger.socket.recv(300)
                    if struct.unpack_from("<H", data, 6)[0] == RECALLED_PLANS:
                        count = struct.unpack_from("<IQI", data, 16)[2]
                        break
            finally:
                os._exit(count)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    agent_test.main()

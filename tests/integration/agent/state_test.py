#!/usr/bin/env python3
"""Operators' settings survive restarts of the real spillwayd: budgets of running jobs, a drained
node; also a damaged file and a full disk.

    usage: state_test.py --build BUILD [unittest arguments]
"""
import os
import signal
import socket
import struct
import subprocess
import time

import agent_test
from agent_test import GIB, PATIENCE_S, Session

KEPT = 7  # the grant's reason
JOB_TOTALS = 32


def checksum(text):
    """As the state file has it: FNV-1a."""
    total = 0xCBF29CE484222325
    for byte in text:
        total = (total ^ byte) * 0x100000001B3 % (1 << 64)
    return total


class StateTest(agent_test.AgentFixture):
    def begin(self, held=0):
        """A job's session with a grant; returns its name and the grant."""
        session = Session(self.path)
        self.addCleanup(session.socket.close)
        session.hello()
        session.register(12 * GIB, held=held)
        session.next(agent_test.ADMISSION)
        serial, budget, _, reason = session.grant()
        session.obey(serial, budget)
        return session, self.status()["jobs"][0]["job"], budget, reason

    def restart(self, how=signal.SIGKILL):
        self.stop(how)
        self.configure(self.more, resume_ms=300)
        self.start()

    def await_log(self, text):
        deadline = time.monotonic() + PATIENCE_S
        while text not in self.log():
            self.assertLess(time.monotonic(), deadline, self.log())
            time.sleep(0.02)

    def await_kept(self, part):
        deadline = time.monotonic() + PATIENCE_S
        while not self.state.exists() or part not in self.state.read_text():
            self.assertLess(time.monotonic(), deadline, "is not kept")
            time.sleep(0.02)

    def setUp(self):
        super().setUp()
        self.more = ""
        self.state = self.folder / "agent.sock.state"

    def test_a_budget_set_by_an_operator_holds_after_the_agent_was_killed(self):
        self.start()
        session, job, _, _ = self.begin()
        self.assertEqual(self.spillway("budget", "set", job, "6GiB", "--weight", "3").returncode, 0)
        serial, budget, _, _ = session.grant()
        session.obey(serial, budget)
        self.await_kept(f"limit={6 * GIB} weight=3 : {job}@")
        session.socket.close()

        self.restart()
        again, same_job, kept, reason = self.begin(held=6 * GIB)

        self.assertEqual((same_job, kept, reason), (job, 6 * GIB, KEPT))
        time.sleep(0.6)  # the time for returning jobs is over; no grant exceeds the operator's limit
        tenancy = self.status()["jobs"][0]["devices"][0]
        self.assertEqual((tenancy["limit_bytes"], tenancy["weight"], tenancy["budget_bytes"]), (6 * GIB, 3, 6 * GIB))

    def test_a_process_that_has_not_returned_keeps_its_budget(self):
        """Regression: the memory of a process that returned too late was budgeted a second time."""
        self.start()
        session, job, budget, _ = self.begin()
        session.socket.close()

        self.restart()
        self.assertGreaterEqual(agent_test.wait_for(self.budgeted, lambda now: now >= budget), budget)
        self.assertEqual([one["job"] for one in self.status()["jobs"]], [job])
        other = agent_test.Job(self.path, 12 * GIB)
        self.addCleanup(other.kill)
        self.assertLessEqual(other.granted, 16 * GIB - budget)

        again = Session(self.path)
        self.addCleanup(again.socket.close)
        again.hello()
        again.register(12 * GIB, held=budget)
        again.next(agent_test.ADMISSION)
        self.assertGreaterEqual(again.grant()[1], 8 * GIB)
        self.assertLessEqual(self.budgeted(), 16 * GIB)

    def forgets(self, job):
        """Whether a manager of jobs gets its totals: the agent expected it."""
        return self.manager(31, job.encode().ljust(96, b"\0")) == JOB_TOTALS

    def manager(self, kind, body):
        """The kind of the answer to a manager's request."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as manager:
            manager.connect(str(self.path))
            manager.send(agent_test.frame(1, struct.pack("<HHBI", 7, 7, 2, 0), 7))
            manager.recv(256)
            manager.send(agent_test.frame(kind, body, 7))
            return struct.unpack_from("<H", manager.recv(256), 6)[0]

    def expect(self, *jobs):
        for job in jobs:
            self.manager(30, struct.pack("<96sqqqii", job.encode(), -1, GIB, -1, -1, 0))

    def test_expected_jobs_outlive_the_agent_but_no_reboot(self):
        self.start()
        self.expect("slurm-5", "slurm-6")

        self.restart()
        self.assertTrue(self.forgets("slurm-5"))
        self.assertFalse(self.forgets("slurm-5"))

        self.stop(signal.SIGKILL)
        lines = self.state.read_text().splitlines(keepends=True)[:-1]
        text = "".join("boot another\n" if line.startswith("boot ") else line for line in lines)
        self.state.write_text(f"{text}end {checksum(text.encode())}\n")
        self.configure(self.more, resume_ms=300)
        self.start()
        self.assertFalse(self.forgets("slurm-6"))
        self.assertNotIn("is discarded", self.log())

    def test_a_drained_node_stays_drained_and_absent_jobs_are_forgotten(self):
        self.start()
        ended = agent_test.Job(self.path, 12 * GIB)
        self.addCleanup(ended.kill)
        job = self.status()["jobs"][0]["job"]
        self.spillway("budget", "set", job, "6GiB")
        self.spillway("drain")
        self.await_kept("draining")
        self.stop(signal.SIGKILL)
        ended.kill()

        self.restart()

        self.assertTrue(self.status()["draining"])
        deadline = time.monotonic() + PATIENCE_S
        while job in self.state.read_text():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)
        self.assertIn("draining", self.state.read_text())

    def test_an_agent_started_beside_another_leaves_its_records_alone(self):
        """Regression: it opened them before its socket, and emptied those that it could not use."""
        self.start()
        session, _, _, _ = self.begin()
        records = self.folder / "agent.sock.state.held"
        records.chmod(0o666)  # no agent would use them like this
        before = records.stat().st_ino

        second = subprocess.run([agent_test.BUILD / "bin/spillwayd", "--config", self.folder / "spillway.toml", "--socket", self.path],
                                capture_output=True, text=True)

        self.assertEqual(second.returncode, 1)
        self.assertIn("Address already in use", second.stderr)
        self.assertEqual(records.stat().st_ino, before)
        self.assertTrue(any(records.read_bytes()[64:]))
        session.socket.close()

    def test_a_damaged_file_is_discarded_with_a_log_line(self):
        for content in (b"", b"spillway-state 1\ndraining\n", b"spillway-state 1\njob limit=-1 : x\nend 1\n", os.urandom(4096)):
            self.state.write_bytes(content)
            self.start()
            self.assertIn("agent.sock.state is not whole and is discarded", self.log())
            self.assertFalse(self.status()["draining"])
            self.stop()
            (self.folder / "log").unlink()

    def test_a_file_that_others_could_have_written_is_ignored(self):
        """Regression: a pipe at that path kept the agent from starting for ever."""
        forged = self.folder / "forged"

        def pipe():
            os.mkfifo(self.state)

        def link():
            self.state.symlink_to(forged)

        def open_to_all():
            self.state.write_bytes(forged.read_bytes())
            self.state.chmod(0o666)

        self.start()
        self.spillway("drain")
        self.await_kept("draining")
        self.stop()
        self.state.rename(forged)
        for place in (pipe, link, open_to_all):
            place()
            self.start()
            self.assertFalse(self.status()["draining"], place)
            self.assertIn("agent.sock.state", self.log())
            self.stop()
            self.state.unlink()
            (self.folder / "log").unlink()

    def test_a_file_or_link_at_the_new_files_path_is_replaced_not_followed(self):
        victim = self.folder / "victim"
        victim.write_text("precious")
        (self.folder / "agent.sock.state.new").symlink_to(victim)
        self.start()
        self.spillway("drain")
        self.await_kept("draining")

        self.assertEqual(victim.read_text(), "precious")
        self.assertFalse(self.state.is_symlink())

    def test_a_full_disk_is_reported_once_and_the_state_is_saved_later(self):
        disk = self.folder / "disk"
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4096", "none", disk], capture_output=True)
        if mounted.returncode != 0:
            self.skipTest("no file system can be mounted here")
        self.addCleanup(subprocess.run, ["umount", disk], check=True)
        (disk / "all").write_bytes(bytes(4096))
        path = self.folder / "spillway.toml"
        self.configure()
        path.write_text(path.read_text().replace("[agent]", f'[agent]\nstate = "{disk}/state"', 1))
        self.start()

        self.assertEqual(self.spillway("drain").returncode, 0)
        self.await_log("would be lost with this agent")
        self.assertIn("No space left on device", self.log())
        time.sleep(1.5)
        self.assertEqual(self.log().count("would be lost with this agent"), 1)
        (disk / "all").unlink()
        self.await_log("is kept again")

        self.assertIn("draining", (disk / "state").read_text())


# Another program runs the fixture's own tests.
del agent_test.AgentTest

if __name__ == "__main__":
    agent_test.main()

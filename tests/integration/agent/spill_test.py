#!/usr/bin/env python3
"""Evicted memory of sleeping models that goes into files under the real spillwayd, and comes back.
Host memory is short on purpose. Awake, a model prints what it prints bare.

    usage: spill_test.py --build BUILD [unittest arguments]
"""
import os
import pathlib
import signal

import agent_test
import job_test
import sleep_test

MIB = 1 << 20
FILE_BYTES = 256 * MIB  # a model's file has at least so much, or the test says little


class SpillTest(sleep_test.SleepFixture):
    def serve(self, quota="8GiB", more=""):
        self.spill = self.folder / "spill"
        self.spill.mkdir(mode=0o700, exist_ok=True)
        agent_test.AgentFixture.configure(
            self, f'[[device]]\nuuid = "{job_test.UUID}"\nmemory = "1GiB"\n[defaults]\nfloor = {sleep_test.FLOOR}\n'
                  f'[host]\nmemory = "1GiB"\nslab = "16MiB"\nhuge_pages = false\nspill_folder = "{self.spill}"\n'
                  f'spill_bytes = "{quota}"\nspill_after_ms = 200\nspill_in_memory = true\n{more}', usage_interval_ms=50)
        self.start()

    def begin_two(self):
        """The first one sleeps with its memory lent to the second, whose own evicted memory would need the host memory."""
        first = self.begin_model("first", "plain", self.sleeping("first"))
        self.await_asleep(first, "first", 1)
        second = self.begin_model("second", "plain", self.sleeping("second"))
        self.await_asleep(second, "second", 1)
        return first, second

    def await_stored(self, job, least=FILE_BYTES):
        return self.await_device(job, lambda device: device["spill"]["stored_bytes"] >= least, "stored memory")

    def host(self):
        return self.status()["host"]

    def used(self):
        """Space of all files there that anybody has open: they have no names. The file system's own count has others' files, too."""
        found = {}
        for link in pathlib.Path("/proc").glob("[0-9]*/fd/*"):
            try:
                if os.readlink(link).startswith(f"{self.spill}/"):
                    facts = link.stat()
                    found[facts.st_dev, facts.st_ino] = facts.st_blocks * 512
            except OSError:
                pass  # it was closed, or is another user's
        return sum(found.values())

    def await_no_space(self):
        agent_test.wait_for(self.used, lambda used: used == 0)
        self.assertEqual(self.used(), 0)

    def let_end(self, job, name):
        for nap in (1, 2):
            self.wake(name, nap)
        self.assertEqual(job.wait(job_test.PATIENCE_S), 0, self.errors(name))

    def test_a_sleeping_model_is_stored_and_comes_back_with_its_bytes(self):
        self.serve()
        first, second = self.begin_two()
        stored = self.await_stored(first)
        self.assertEqual(os.listdir(self.spill), [], "the file has no name")
        self.assertEqual(stored["spill"]["failures"], 0)
        host = self.host()
        self.assertGreaterEqual(host["spill_used_bytes"], stored["spill"]["stored_bytes"])
        self.assertIn("stored, 0 failures", self.spillway("job", f"local-{first.pid}").stdout)

        self.wake("first", 1)
        self.await_asleep(first, "first", 2)
        self.await_device(first, lambda device: device["spill"]["read_bytes"] >= FILE_BYTES, "reading what was stored")
        self.let_end(first, "first")
        self.let_end(second, "second")
        self.assert_answers_as_bare("first", "plain", 3)
        self.assert_answers_as_bare("second", "plain", 3)
        agent_test.wait_for(self.host, lambda now: now["spill_used_bytes"] == 0)
        self.assertEqual(self.host()["spill_used_bytes"], 0)

    def test_files_never_exceed_the_quota(self):
        self.serve(quota="320MiB")
        first, second = self.begin_two()
        self.await_stored(first)
        host = self.host()
        self.assertLessEqual(host["spill_used_bytes"], 320 * MIB)
        self.let_end(first, "first")
        self.let_end(second, "second")
        self.assert_answers_as_bare("first", "plain", 3)

    def test_a_killed_job_leaves_no_file_and_no_space(self):
        self.serve()
        first, second = self.begin_two()
        self.await_stored(first)
        self.assertGreaterEqual(self.used(), FILE_BYTES)
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        agent_test.wait_for(self.host, lambda now: now["spill_used_bytes"] == 0)
        os.kill(second.pid, signal.SIGKILL)
        second.wait()
        self.await_no_space()
        self.assertEqual(os.listdir(self.spill), [])

    def test_a_killed_agent_leaves_the_jobs_bytes_and_no_space_afterwards(self):
        self.serve()
        first, second = self.begin_two()
        stored = self.await_stored(first)
        self.stop(signal.SIGKILL)
        self.start()
        self.await_device(first, lambda device: device["spill"]["stored_bytes"] >= stored["spill"]["stored_bytes"] // 2, "the stored memory's report")
        self.assertGreater(self.host()["spill_used_bytes"], 0, "the new agent counts it")

        self.let_end(first, "first")
        self.let_end(second, "second")
        self.assert_answers_as_bare("first", "plain", 3)
        self.await_no_space()

    def test_a_folder_where_others_may_write_is_refused(self):
        (self.folder / "spill").mkdir()
        (self.folder / "spill").chmod(0o777)
        self.serve()
        self.assertIn("others may write there", self.log())
        self.assertEqual(self.host()["spill_bytes"], 0)


if __name__ == "__main__":
    agent_test.main()

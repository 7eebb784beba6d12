#!/usr/bin/env python3
"""Models that sleep, on a device that holds one of them, under the real spillwayd. Asleep, a model
gives its memory to another without a call of its own, also a pool of mappings next to each other
with a graph captured over it. Awake, it prints what it prints bare.

    usage: sleep_test.py --build BUILD [unittest arguments]
"""
import os
import signal
import time

import agent_test
import job_test

MIB = 1 << 20
PIECES, PIECE_MIB = 14, 64
POOL_BYTES = PIECES * PIECE_MIB * MIB
LONG_ANSWERS = "--tokens=100"  # a model that sleeps again before the other one has left takes no memory from it
FLOOR = 96 * MIB  # holds a piece beside the small allocations


class SleepFixture(job_test.JobFixture):
    trainer = ["sleeper", f"--pieces={PIECES}", f"--piece-mib={PIECE_MIB}"]

    def serve(self, turns="never"):
        agent_test.AgentFixture.configure(
            self, f'[[device]]\nuuid = "{job_test.UUID}"\nmemory = "1GiB"\n[defaults]\nturns = "{turns}"\nfloor = {FLOOR}\n'
                  '[turns]\nquantum_ms = 400\ncost_factor = 1\n', usage_interval_ms=50)
        self.start()

    def begin_model(self, name, memory, *more, answers=3, park="off"):
        return self.begin(f"--memory={memory}", f"--park={park}", f"--agent={self.path}", "--lend-pools", f"--report={self.folder}/{name}.json",
                          name=name, more=[f"--answers={answers}", *more])

    def sleeping(self, name):
        return f"--until={self.folder}/{name}/wake"

    def wake(self, name, nap):
        (self.folder / name / f"wake.{nap}").touch()

    def await_asleep(self, job, name, nap):
        agent_test.wait_for(lambda: self.errors(name), lambda text: f"asleep {nap}" in text or job.poll() is not None, job_test.PATIENCE_S)
        self.assertIn(f"asleep {nap}", self.errors(name))

    def device_of(self, job):
        found = [device for one in self.status()["jobs"] if one["job"] == f"local-{job.pid}" for device in one["devices"]]
        return found[0] if found else None

    def await_device(self, job, fits, what):
        deadline, device = time.monotonic() + job_test.PATIENCE_S, None
        while time.monotonic() < deadline:
            device = self.device_of(job) or device
            if device is not None and fits(device):
                return device
            time.sleep(0.02)
        self.fail(f"{what} did not come: {device}")

    def assert_answers_as_bare(self, name, memory, answers, *more):
        output = (self.folder / name / "output").read_bytes()
        bare = self.finish(self.begin(f"--memory={memory}", "--off", name=f"bare-{name}", more=[f"--answers={answers}", *more]), f"bare-{name}")
        self.assertEqual(output, bare)


class SleepTest(SleepFixture):
    def check_two_models(self, memory, park):
        self.serve()
        first = self.begin_model("first", memory, self.sleeping("first"), park=park)
        self.await_asleep(first, "first", 1)
        second = self.begin_model("second", "plain", LONG_ANSWERS, self.sleeping("second"), park=park)
        self.await_asleep(second, "second", 1)
        asleep = self.await_device(first, lambda device: device["to_host_bytes"] >= POOL_BYTES - FLOOR, "the first model's leaving")
        self.assertLessEqual(asleep["unmovable_bytes"], 16 * MIB)
        self.assertFalse(asleep["overdue"])
        self.await_device(second, lambda device: not device["active"], "the second model's idleness")
        self.wake("first", 1)
        self.await_asleep(first, "first", 2)
        self.await_device(first, lambda device: device["to_device_bytes"] >= POOL_BYTES - FLOOR, "the first model's return")
        self.wake("second", 1)
        self.await_asleep(second, "second", 2)
        for name, job in (("first", first), ("second", second)):
            self.wake(name, 2)
            self.assertEqual(job.wait(job_test.PATIENCE_S), 0, self.errors(name))
        self.assert_answers_as_bare("first", memory, 3)
        self.assert_answers_as_bare("second", "plain", 3, LONG_ANSWERS)

    def test_a_pool_of_mappings_leaves_while_its_model_sleeps(self):
        self.check_two_models("pool", "off")

    def test_ordinary_memory_leaves_while_its_model_sleeps(self):
        self.check_two_models("plain", "off")

    def test_a_pool_leaves_also_where_pointers_are_unproven(self):
        self.check_two_models("pool", "auto")

    def test_host_memory_is_ready_for_a_model_that_sleeps(self):
        self.serve()
        first = self.begin_model("first", "plain", self.sleeping("first"))
        self.await_asleep(first, "first", 1)
        ready = self.await_device(first, lambda device: device["host_bytes"] >= POOL_BYTES, "host memory for all of it")
        self.assertEqual(ready["to_host_bytes"], 0)
        self.assertGreaterEqual(ready["resident_bytes"], POOL_BYTES)
        self.wake("first", 1)
        self.wake("first", 2)
        self.assertEqual(first.wait(job_test.PATIENCE_S), 0, self.errors("first"))

    def test_a_model_that_ends_asleep_ends(self):
        self.serve()
        first = self.begin_model("first", "pool", self.sleeping("first"))
        self.await_asleep(first, "first", 1)
        second = self.begin_model("second", "plain", self.sleeping("second"))
        self.await_device(first, lambda device: device["resident_bytes"] <= FLOOR, "the first model's leaving")
        first.send_signal(signal.SIGTERM)
        self.assertEqual(first.wait(10), -signal.SIGTERM)
        self.wake("second", 1)
        self.wake("second", 2)
        self.assertEqual(second.wait(job_test.PATIENCE_S), 0, self.errors("second"))

    def test_two_pools_take_turns(self):
        self.serve("always")
        jobs = {}
        for name in ("first", "second"):
            jobs[name] = self.begin_model(name, "pool", "--tokens=10", "--naps=1", self.sleeping(name), answers=1 << 20)
            self.await_asleep(jobs[name], name, 1)
        for name in jobs:
            self.wake(name, 1)
        deadline = time.monotonic() + job_test.PATIENCE_S
        while time.monotonic() < deadline:
            devices = {name: self.device_of(job) for name, job in jobs.items()}
            if all(device is not None and device["turn"]["begun"] >= 3 for device in devices.values()):
                break
            time.sleep(0.05)
        else:
            self.fail(f"no turns: {devices} {self.log()}")
        for name, job in jobs.items():
            os.kill(job.pid, signal.SIGKILL)
            job.wait()
            answers = self.complete_answers(name)
            bare = self.finish(self.begin("--memory=pool", "--off", name="bare", more=["--tokens=10", f"--answers={answers}"]), "bare")
            output = (self.folder / name / "output").read_bytes()
            self.assertGreater(answers, 0)
            self.assertEqual(output[:len(bare)], bare)

    def complete_answers(self, name):
        return (self.folder / name / "output").read_bytes().count(b"\n") // 10


if __name__ == "__main__":
    agent_test.main()

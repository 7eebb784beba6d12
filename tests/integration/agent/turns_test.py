#!/usr/bin/env python3
"""Two trainers that each need nearly the whole device take turns under the real spillwayd: the same
output, one at a time, and what happens when one is killed or stopped, or the agent dies.

    usage: turns_test.py --build BUILD [unittest arguments]
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import agent_test
import job_test

FLOOR = "32MiB"


class TurnsTest(job_test.JobFixture):
    trainer = ["gpt", "--layers=2", "--width=512", "--batch=4"]

    def setUp(self):
        super().setUp()
        self.peak_bytes = None

    def configure_turns(self, turns="always", quantum_ms=400):
        """The device has a little more than one trainer needs."""
        if self.peak_bytes is None:
            self.finish(self.begin("--steps=3", f"--report={self.folder}/report.json", name="peak"), "peak")
            self.peak_bytes = self.report()["wanted_peak_bytes"]
        memory = int(self.peak_bytes * 1.05) + (64 << 20)
        agent_test.AgentFixture.configure(
            self, f'[[device]]\nuuid = "{job_test.UUID}"\nmemory = {memory}\n[defaults]\nturns = "{turns}"\nfloor = "{FLOOR}"\n'
                  f'[turns]\nquantum_ms = {quantum_ms}\ncost_factor = 1\n', usage_interval_ms=50)
        return memory

    def begin_two(self, length):
        self.names = ("first", "second")
        jobs = []
        for name in self.names:
            jobs.append(self.begin(length, "--park=off", f"--agent={self.path}", f"--report={self.folder}/{name}.json", name=name))
        return jobs

    def device(self):
        return next(one for one in self.status()["devices"] if one["uuid"] == job_test.UUID)

    def turns(self):
        """By process: its turn, from the agent."""
        return {int(job["job"].split("-")[1]): device["turn"] for job in self.status()["jobs"] for device in job["devices"]}

    def await_turns(self, fits, what):
        deadline, turns = time.monotonic() + job_test.PATIENCE_S, None
        while time.monotonic() < deadline:
            turns = self.turns()
            if fits(turns):
                return turns
            time.sleep(0.02)
        self.fail(f"{what} did not come: {turns}")

    def await_turn_of(self, job, state="runs"):
        return self.await_turns(lambda turns: turns.get(job.pid, {}).get("state") == state, f"{state} of {job.pid}")[job.pid]

    def test_both_finish_as_alone_one_after_another(self):
        memory = self.configure_turns()
        self.start()
        jobs = self.begin_two(job_test.ENDLESS)
        self.await_turn_of(jobs[0])
        for job in (jobs[1], jobs[0], jobs[1]):
            self.await_turn_of(job)
            self.assertEqual([turn["state"] for turn in self.turns().values()].count("waits"), 1)
            self.assertLessEqual(self.device()["budgeted_bytes"], memory)
        self.assertTrue(self.device()["turns"]["on"])
        page = self.spillway("status").stdout
        self.assertIn("jobs take turns: the operator's settings ask for turns", page)
        self.assertIn("has its turn: ", page)
        for job, name in zip(jobs, self.names):
            self.assert_as_bare(self.finish(job, name))
            report = json.loads((self.folder / f"{name}.json").read_text())
            self.assertGreater(report["turns"]["begun"], 0)
            self.assertGreater(report["turns"]["waited_ns"], 100_000_000, "its calls waited")

    def test_a_killed_or_stopped_job_loses_its_turn(self):
        self.configure_turns(quantum_ms=60_000)
        self.start()
        jobs = self.begin_two(job_test.ENDLESS)
        turns = self.await_turns(lambda turns: sorted(turn["state"] for turn in turns.values()) == ["runs", "waits"], "a turn")
        holder, other = jobs if turns[jobs[0].pid]["state"] == "runs" else reversed(jobs)
        holder.send_signal(signal.SIGSTOP)
        self.await_turn_of(other)
        self.assertIn("stopped", self.turns()[holder.pid]["reason"])
        holder.send_signal(signal.SIGCONT)
        other.kill()
        other.wait()
        self.await_turns(lambda turns: turns.get(holder.pid, {}).get("state") in ("runs", "shares"), "the last one's turn")
        name = self.names[jobs.index(holder)]
        self.assert_as_bare(self.finish(holder, name))

    def test_jobs_keep_running_when_the_agent_dies_and_comes_back(self):
        self.configure_turns()
        self.start()
        jobs = self.begin_two(job_test.ENDLESS)
        self.await_turn_of(jobs[1])
        self.stop(signal.SIGKILL)
        self.start()
        # The new agent once believed that jobs need only what they hold: all of them fit, and shared.
        self.await_turns(lambda turns: sorted(turn["state"] for turn in turns.values()) == ["runs", "waits"], "a turn")
        for job in (jobs[0], jobs[1]):
            self.await_turn_of(job)
        for job, name in zip(jobs, self.names):
            self.assert_as_bare(self.finish(job, name))

    def test_a_reload_ends_turns(self):
        self.configure_turns()
        self.start()
        jobs = self.begin_two(job_test.ENDLESS)
        self.await_turn_of(jobs[1])
        self.configure_turns("never")
        self.assertEqual(self.spillway("config", "reload").returncode, 0)
        self.await_turns(lambda turns: all(turn["state"] == "shares" for turn in turns.values()), "shares")
        for job, name in zip(jobs, self.names):
            self.assert_as_bare(self.finish(job, name))



class TurningJobsTest(job_test.JobFixture):
    """Two jobs of 160 MiB on a device of 220 MiB."""

    def start_turns(self, quantum_ms):
        agent_test.AgentFixture.configure(
            self, f'[[device]]\nuuid = "{job_test.UUID}"\nmemory = "220MiB"\n[defaults]\nturns = "always"\nfloor = "{FLOOR}"\n'
                  f'[turns]\nquantum_ms = {quantum_ms}\ncost_factor = 1\nstuck_s = 5\n', usage_interval_ms=50)
        self.start()

    def begin_job(self, kind):
        folder = self.folder / kind
        folder.mkdir()
        environment = {key: value for key, value in os.environ.items() if not key.startswith("SPILLWAY_")}
        environment["XDG_STATE_HOME"] = str(folder)
        program = pathlib.Path(__file__).with_name("turning_job.py")
        command = [agent_test.BUILD / "bin/spillway", "run", "--quiet", "--simulate=h200", "--park=off", f"--agent={self.path}",
                   "--", sys.executable, program, kind, folder]
        with open(folder / "output", "wb") as output:
            job = subprocess.Popen([str(word) for word in command], env=environment, stdout=output, stderr=subprocess.STDOUT)
        self.addCleanup(self.end, job)
        return job

    def output(self, kind):
        return (self.folder / kind / "output").read_text()

    def await_state(self, job, state):
        def turn():
            return [device["turn"] for one in self.status()["jobs"] if one["job"].endswith(f"-{job.pid}") for device in one["devices"]]
        turns = agent_test.wait_for(turn, lambda turns: [one["state"] for one in turns] == [state], job_test.PATIENCE_S)
        self.assertEqual([one["state"] for one in turns], [state])

    def finish_steady(self, job):
        (self.folder / "steady" / "end").touch()
        self.assertEqual(job.wait(job_test.PATIENCE_S), 0, self.output("steady"))

    def test_a_job_whose_departing_memory_waits_for_a_held_call_goes_on_in_its_turn(self):
        """The shrink thread waited for the work, the work for the call, the call for the gate, and the gate for that thread."""
        self.start_turns(quantum_ms=400)
        steady, dependent = self.begin_job("steady"), self.begin_job("dependent")
        try:
            self.assertEqual(dependent.wait(40), 0, self.output("dependent"))
        except subprocess.TimeoutExpired:
            self.fail("it hangs at its own gate")
        self.assertIn("done", self.output("dependent"))
        self.finish_steady(steady)

    def test_a_new_context_waits_for_its_turn_too(self):
        """The end of the old context opened the gate, and it stayed open for the new one."""
        self.start_turns(quantum_ms=60_000)
        renewing = self.begin_job("renewing")
        self.await_state(renewing, "shares")
        steady = self.begin_job("steady")
        self.await_state(steady, "runs")
        self.await_state(renewing, "waits")
        self.agent.send_signal(signal.SIGSTOP)  # no word of the agent's opens the gate
        self.addCleanup(self.agent.send_signal, signal.SIGCONT)
        (self.folder / "renewing" / "renew").touch()
        agent_test.wait_for(lambda: self.output("renewing"), lambda text: "renewed" in text, job_test.PATIENCE_S)
        time.sleep(1)  # its calls would have ended long ago
        self.assertIsNone(renewing.poll(), self.output("renewing"))
        self.assertNotIn("done", self.output("renewing"))
        self.agent.send_signal(signal.SIGCONT)
        self.finish_steady(steady)
        self.assertEqual(renewing.wait(job_test.PATIENCE_S), 0, self.output("renewing"))


if __name__ == "__main__":
    agent_test.main()

#!/usr/bin/env python3
"""Jobs of a real Slurm that train on the simulated GPU under the real spillwayd: budgets by `--gpu-mem` and by shards, for users
without rights.

    usage: jobs_test.py --build BUILD [unittest arguments]
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import sys
import tempfile
import unittest

import slurm_cluster
from slurm_cluster import PATIENCE_S, wait_for

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import node_agent  # noqa: E402
import skips  # noqa: E402

BUILD = None
MIB = 1 << 20
DEVICE = 1 << 30
SHARD = 64 * MIB
USER = "nobody"
# Its tensors are movable at this width. Memory is sparse and kernels leave tags, so the run is quick.
TRAINER = "gpt --layers=2 --width=256"
STEPS = 12
NOT_BOUND = "Slurm keeps no control group for the job, so no budget can be bound to it"


def plugin_line(folder, need="required"):
    return (f"{need} {BUILD}/lib/spillway_spank.so lib={BUILD}/lib/libspillway.so socket={folder}/agent.sock shard={SHARD} "
            f"log={folder}/totals")


class SlurmFixture(unittest.TestCase):
    """One cluster and one agent for all tests of a class."""

    proctrack = "cgroup"
    need = "required"
    device = DEVICE
    settings = ""  # more of the agent's

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="spillway-slurm."))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.folder.chmod(0o755)
        (cls.folder / "jobs").mkdir()
        (cls.folder / "jobs").chmod(0o777)
        # The totals are as of a process's last report.
        often = node_agent.configuration("h200", cls.device, cls.settings).replace("[agent]", "[agent]\nusage_interval_ms = 20")
        cls.agent = node_agent.NodeAgent(BUILD, cls.folder, often)
        cls.agent.start()
        cls.addClassCleanup(cls.agent.stop)
        cls.cluster = slurm_cluster.SlurmCluster(cls.folder, plugin_line(cls.folder, cls.need), cls.proctrack)
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start()

    def setUp(self):
        self.name = self.id().rsplit(".", 1)[1]
        self.addCleanup(self.cluster.end_jobs)

    def run(self, result=None):
        before = len(result.failures) + len(result.errors)
        super().run(result)
        if len(result.failures) + len(result.errors) > before:
            print(self.cluster.logs(), self.agent.log(), file=sys.stderr)

    def path(self, name, suffix):
        return self.folder / "jobs" / f"{self.name}.{name}.{suffix}"

    def trainer(self, name, steps=STEPS, machine=""):
        """A script that trains; steps=None: until the file `.end` exists. `machine`: more variables of the simulator."""
        length = f"--steps={steps}" if steps else f"--steps=1000000 --until={self.path(name, 'end')}"
        script = self.path(name, "sh")
        script.write_text(f"""#!/bin/sh
export LD_LIBRARY_PATH={BUILD}/simulator SPILLWAY_SIM_PROFILE=h200 SPILLWAY_SIM_COMPUTE=tags {machine}
export SPILLWAY_SIM_STATS={self.path(name, 'statistics')} SPILLWAY_REPORT={self.path(name, 'report')}
ulimit -t 100  # if this test is killed
exec {BUILD}/workloads/{TRAINER} {length}
""")
        script.chmod(0o755)
        return script

    def sbatch(self, name, *options, steps=STEPS, user=USER, machine=""):
        """The number of the submitted job that trains."""
        submitted = self.cluster.run("sbatch", "--parsable", f"--output={self.path(name, 'output')}", f"--error={self.path(name, 'errors')}",
                                     *options, self.trainer(name, steps, machine), user=user)
        self.assertEqual(submitted.returncode, 0, submitted.stderr)
        return int(submitted.stdout)

    def srun(self, *arguments, user=USER):
        return self.cluster.run("srun", "--quiet", *arguments, user=user)

    def bare(self, steps=STEPS):
        """What the trainer prints without Slurm and Spillway."""
        ran = self.cluster.run(self.trainer("bare", steps))
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return ran.stdout

    def end(self, name):
        self.path(name, "end").touch()

    def report(self, name):
        return json.loads(self.path(name, "report").read_text())

    def assert_trained(self, name, output):
        """As many steps as it printed, with a bare run's bytes, and no fault on the device."""
        steps = sum(line.startswith("step ") for line in output.splitlines())
        self.assertEqual(output, self.bare(steps))
        self.assertEqual(json.loads(self.path(name, "statistics").read_text())["violations"], [])

    def await_tenancy(self, number, fits=bool):
        """The agent's figures for the job's device."""
        return wait_for(lambda: self.agent.tenancies().get(f"slurm-{number}"), lambda seen: seen is not None and fits(seen))

    def totals(self, number, lines=1):
        """The epilog's last line about the job; it waits for that many."""
        log = self.folder / "totals"

        def look():
            text = log.read_text() if log.exists() else ""
            return re.findall(rf"^time=\S+ job={number} (.*)$", text, re.MULTILINE)

        found = wait_for(look, lambda seen: len(seen) >= lines)
        return {key: int(value) for key, value in (word.split("=") for word in found[-1].split())}

    def assert_forgotten(self, number):
        asked = self.agent.command("job", f"slurm-{number}")
        self.assertNotEqual(asked.returncode, 0, "it still runs for the agent")
        self.assertRegex(self.agent.log(), rf"request=forget_job job=slurm-{number} outcome=done")


class OptionTest(SlurmFixture):
    def test_the_help_explains_it(self):
        for command in "srun", "sbatch", "salloc":
            self.assertIn("--gpu-mem=SIZE[,min=SIZE][,weight=N]", self.cluster.run(command, "--help").stdout)

    def test_a_wrong_size_is_refused_before_the_job_is_submitted(self):
        for command in ("srun", "true"), ("sbatch", "--wrap=true"), ("salloc", "true"):
            ran = self.cluster.run(command[0], "--gpu-mem=banana", *command[1:], user=USER)
            self.assertNotEqual(ran.returncode, 0)
            self.assertIn("spillway: --gpu-mem: 'banana' is no size; sizes are written like 8G or 512MiB", ran.stderr)
        self.assertNotIn("expect_job", self.agent.log())

    def test_a_job_without_a_budget_is_left_alone(self):
        ran = self.srun("env")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertNotIn("SPILLWAY", ran.stdout)
        self.assertNotIn("LD_PRELOAD=", ran.stdout)

    def test_users_settings_of_frameworks_stay(self):
        ran = self.srun("--gpu-mem=1G", "--export=ALL,PYTORCH_ALLOC_CONF=mine", "env")
        self.assertIn("\nPYTORCH_ALLOC_CONF=mine\n", "\n" + ran.stdout)
        self.assertNotIn("PYTORCH_CUDA_ALLOC_CONF", ran.stdout)
        self.assertIn("TF_GPU_ALLOCATOR=cuda_malloc_async", ran.stdout)


class BudgetTest(SlurmFixture):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.half = None

    def half_of_peak(self):
        """Half of what the trainer wants."""
        cls = type(self)
        if cls.half is None:
            ran = self.srun("--gpu-mem=1G", self.trainer("whole"))
            self.assertEqual(ran.returncode, 0, ran.stderr)
            cls.half = self.report("whole")["wanted_peak_bytes"] // 2 // (2 * MIB) * 2 * MIB
        return cls.half

    def test_srun_trains_within_its_budget(self):
        half = self.half_of_peak()

        ran = self.srun(f"--gpu-mem={half},min=32M,weight=2", self.trainer("one"))

        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assert_trained("one", ran.stdout)
        self.assertEqual(self.report("one")["budget_bytes"], half)
        self.assertGreater(self.report("one")["offloaded_bytes"], 0)
        number = int(re.findall(r"request=expect_job job=slurm-(\d+) limit_bytes=(\d+) guaranteed_bytes=33554432 weight=2 outcome=done",
                                self.agent.log())[-1][0])
        totals = self.totals(number)
        self.assertEqual(totals["uid"], 65534)
        self.assertLessEqual(totals["peak_bytes"], half)
        self.assertGreater(totals["peak_bytes"], half // 2)
        self.assertGreaterEqual(totals["allocated_bytes"], totals["peak_bytes"])
        for field in "to_host_bytes", "to_device_bytes", "stall_ns":
            self.assertGreater(totals[field], 0, field)
        self.assert_forgotten(number)

    def test_two_jobs_share_the_device(self):
        half = self.half_of_peak()
        numbers = {name: self.sbatch(name, f"--gpu-mem={half}", steps=None) for name in ("first", "second")}

        for number in numbers.values():
            self.await_tenancy(number, lambda seen: 0 < seen["resident_bytes"] <= half and seen["limit_bytes"] == half)
        self.assertEqual(len(self.agent.tenancies()), 2)

        for name, number in numbers.items():
            self.end(name)
            self.cluster.await_state(number, "COMPLETED")
            self.assert_trained(name, self.path(name, "output").read_text())
            self.assertLessEqual(self.totals(number)["peak_bytes"], half)

    def test_steps_have_bounds_of_their_own_within_their_job(self):
        half = self.half_of_peak()
        quarter = half // 2 // (2 * MIB) * 2 * MIB
        script = self.path("job", "sh")
        steps = [f"srun --quiet --overlap {option} {self.trainer(name)} > {self.path(name, 'output')}" for name, option in
                 (("inherits", ""), ("smaller", f"--gpu-mem={quarter}"))]
        script.write_text("#!/bin/sh\n" + "\n".join(steps) + f"\nsrun --quiet --overlap --gpu-mem={2 * half} true\n")
        script.chmod(0o755)

        ran = self.cluster.run("salloc", "--quiet", f"--gpu-mem={half}", script, user=USER)

        self.assertIn("spillway: the node agent refuses: ", ran.stderr)
        self.assertIn("is more than the job has", ran.stderr)
        for name, budget in ("inherits", half), ("smaller", quarter):
            self.assert_trained(name, self.path(name, "output").read_text())
            self.assertEqual(self.report(name)["budget_bytes"], budget)

    def test_a_killed_job_leaves_nothing(self):
        number = self.sbatch("job", "--gpu-mem=256M", steps=None)
        self.await_tenancy(number, lambda seen: seen["resident_bytes"] > 0)

        self.cluster.run("scancel", "--signal=KILL", "--full", number)

        self.cluster.await_state(number, "FAILED", "CANCELLED")
        self.assertGreater(self.totals(number)["peak_bytes"], 0)
        self.assert_forgotten(number)
        self.assertEqual(self.agent.status()["devices"][0]["budgeted_bytes"], 0)

    def test_a_requeued_job_begins_anew(self):
        number = self.sbatch("job", "--requeue", "--gpu-mem=256M", steps=None)
        self.await_tenancy(number, lambda seen: seen["iterations"] > 0 or seen["resident_bytes"] > 0)

        self.assertEqual(self.cluster.run("scontrol", "requeue", number).returncode, 0)
        self.totals(number)
        self.cluster.start_requeued(number)
        tenancy = self.await_tenancy(number, lambda seen: seen["resident_bytes"] > 0)

        self.assertEqual(tenancy["limit_bytes"], 256 * MIB)
        self.end("job")
        self.cluster.await_state(number, "COMPLETED")
        self.totals(number, lines=2)
        self.assert_forgotten(number)

    def test_a_job_outlives_its_agent_with_its_budget(self):
        half = self.half_of_peak()
        number = self.sbatch("job", f"--gpu-mem={half}", steps=None)
        self.await_tenancy(number, lambda seen: seen["resident_bytes"] > 0)

        self.agent.stop(signal.SIGKILL)
        self.agent.start()

        self.await_tenancy(number, lambda seen: 0 < seen["resident_bytes"] <= half and seen["limit_bytes"] == half)
        self.end("job")
        self.cluster.await_state(number, "COMPLETED")
        self.assert_trained("job", self.path("job", "output").read_text())
        self.assertLessEqual(self.totals(number)["peak_bytes"], half)

    def test_a_job_begins_when_its_agent_is_back(self):
        self.agent.stop()
        process = self.cluster.popen("srun", "--quiet", "--gpu-mem=1G", self.trainer("job"), user=USER)
        wait_for(lambda: self.cluster.run("squeue", "-h", "-o", "%T").stdout.split(), lambda states: "RUNNING" in states or "CONFIGURING" in states)
        self.agent.start()
        output, errors = process.communicate(timeout=PATIENCE_S)

        self.assertEqual(process.returncode, 0, errors)
        self.assert_trained("job", output)


class ContendedTest(SlurmFixture):
    """A device smaller than the jobs' limits together, and one memory that all of the jobs share in the simulator."""

    device = 80 * MIB
    settings = "[defaults]\nfloor = 0\n"  # the usual one is more than half of this device: the second job would wait

    def test_a_second_job_takes_from_the_first_what_both_may_not_have(self):
        machine = f"SPILLWAY_SIM_NODE={self.folder}/jobs/node SPILLWAY_SIM_CAPACITY={self.device}"
        first = self.sbatch("first", "--gres=shard:1", steps=None, machine=machine)
        alone = self.await_tenancy(first, lambda seen: seen["resident_bytes"] > self.device // 2)
        self.assertEqual((alone["limit_bytes"], alone["budget_bytes"]), (SHARD, SHARD))

        second = self.sbatch("second", f"--gpu-mem={SHARD}", steps=None, machine=machine)

        other = self.await_tenancy(second, lambda seen: seen["resident_bytes"] > 0)
        self.assertGreater(alone["limit_bytes"] + other["limit_bytes"], self.device)
        less = self.await_tenancy(first, lambda seen: 0 < seen["resident_bytes"] <= seen["budget_bytes"] < SHARD)
        self.assertEqual(less["limit_bytes"], SHARD)
        wait_for(lambda: self.agent.tenancies().values(), lambda both: sum(seen["budget_bytes"] for seen in both) <= self.device)
        for name, number in ("first", first), ("second", second):
            self.end(name)
            self.cluster.await_state(number, "COMPLETED")
            self.assert_trained(name, self.path(name, "output").read_text())


class ShardTest(SlurmFixture):
    def budget_of(self, *options, environment="ALL"):
        """(srun's exit code, its errors, the job's budget)"""
        ran = self.srun(*options, f"--export={environment}", self.trainer("job"))
        budget = self.report("job")["budget_bytes"] if ran.returncode == 0 else None
        return ran, budget

    def test_shards_are_a_budget(self):
        ran, budget = self.budget_of("--gres=shard:3")
        self.assertEqual((ran.returncode, budget), (0, 3 * SHARD), ran.stderr)

    def test_less_than_the_shards_may_be_asked_for(self):
        ran, budget = self.budget_of("--gres=shard:3", "--gpu-mem=128M")
        self.assertEqual((ran.returncode, budget), (0, 128 * MIB), ran.stderr)

    def test_more_than_the_shards_is_refused(self):
        ran, _ = self.budget_of("--gres=shard:3", "--gpu-mem=256M")
        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("256 MiB is more than the job has, 192 MiB", ran.stderr)

    def test_shards_of_the_environment_are_worth_nothing(self):
        ran = self.srun("--gres=gpu:1", "--export=ALL,SLURM_SHARDS_ON_NODE=99", "env")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("SLURM_SHARDS_ON_NODE=99", ran.stdout)
        self.assertNotIn("SPILLWAY", ran.stdout)

    def test_an_agent_that_lost_its_record_learns_the_jobs_shards_again(self):
        script, began, goes_on = self.path("batch", "sh"), self.path("batch", "began"), self.path("batch", "goes_on")
        script.write_text(f"#!/bin/sh\ntouch {began}\nwhile [ ! -e {goes_on} ]; do sleep 0.1; done\n"
                          f"srun --quiet --overlap {self.trainer('job')}\nsrun --quiet --overlap --gpu-mem=1G true\n")
        script.chmod(0o755)
        process = self.cluster.popen("salloc", "--quiet", "--gres=shard:3", script, user=USER)
        wait_for(began.exists)
        self.agent.stop(signal.SIGKILL)
        (self.folder / "agent.sock.state").unlink()
        self.agent.start()
        goes_on.touch()

        output, errors = process.communicate(timeout=PATIENCE_S)
        self.assertIn("1.0 GiB is more than the job has, 192 MiB", errors)
        self.assert_trained("job", output)
        self.assertEqual(self.report("job")["budget_bytes"], 3 * SHARD)


class CrashTest(SlurmFixture):
    def test_a_crashed_node_forgets_its_jobs(self):
        number = self.sbatch("job", "--requeue", "--gpu-mem=256M", steps=None)
        self.await_tenancy(number, lambda seen: seen["resident_bytes"] > 0)

        self.cluster.stop("slurmd", signal.SIGKILL)
        for process in self.cluster.processes_of(number):
            os.kill(process, signal.SIGKILL)
        self.agent.stop(signal.SIGKILL)
        self.agent.start()
        self.cluster.start_slurmd()

        self.cluster.run("scancel", number)
        self.cluster.await_state(number, "CANCELLED", "FAILED", "NODE_FAIL", "COMPLETED", "PENDING")
        self.assertEqual(self.agent.tenancies(), {})
        wait_for(lambda: re.search(rf"request=forget_job job=slurm-{number} outcome=done", self.agent.log()))


    def test_a_node_without_an_agent_is_drained_and_the_job_requeued(self):
        self.agent.stop()
        number = self.sbatch("job", "--gpu-mem=256M")
        wait_for(self.cluster.node_state, lambda state: state.startswith("drain"))

        self.agent.start()
        self.cluster.run("scontrol", "update", f"NodeName={slurm_cluster.NODE}", "State=RESUME")
        self.cluster.start_requeued(number)

        self.cluster.await_state(number, "COMPLETED")
        self.assert_trained("job", self.path("job", "output").read_text())


class NoControlGroupsTest(SlurmFixture):
    proctrack = "linuxproc"

    def test_a_step_without_a_control_group_does_not_begin(self):
        ran = self.srun("--gpu-mem=256M", self.trainer("job"))
        self.assertNotEqual(ran.returncode, 0)
        self.assertIn(NOT_BOUND, ran.stderr)
        self.assertFalse(self.path("job", "report").exists())

    def test_other_jobs_run(self):
        self.assertEqual(self.srun("true").returncode, 0)


class OptionalTest(SlurmFixture):
    proctrack = "linuxproc"
    need = "optional"

    def test_a_step_begins_with_its_request_as_its_own_limit(self):
        ran = self.srun("--gpu-mem=64M", self.trainer("job"))
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn(NOT_BOUND, ran.stderr)
        self.assertEqual(self.report("job")["budget_bytes"], 64 * MIB)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True, type=lambda path: pathlib.Path(path).resolve())
    known, rest = parser.parse_known_args()
    BUILD = known.build
    reason = slurm_cluster.why_not(BUILD)
    if reason:
        skips.leave_out(reason)
    skips.main(rest, verbosity=2)

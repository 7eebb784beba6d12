#!/usr/bin/env python3
"""The trainers at real size, in the simulator's compute mode `tags`: the same hashes below the
memory peak as bare, and other hashes as soon as one ordering rule is left out.

    Usage: tags_test.py BUILD_FOLDER [unittest's options]
"""
import json
import os
import pathlib
import resource
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))

import simulated_gpu  # noqa: E402  (path set above)

BUILD = pathlib.Path()
GIB = 1 << 30
QUIET_S = 300
RESNET = "convnet --model=resnet50 --image=224 --batch=64 --images=64"


class TagsTest(unittest.TestCase):
    bare_runs = {}

    def bare(self, command, profile="h200"):
        """The command without Spillway. All such runs are equal, so one serves all tests."""
        key = (command, profile)
        if key not in self.bare_runs:
            self.bare_runs[key] = self.run_trainer(command, profile=profile)
        return self.bare_runs[key]

    def run_trainer(self, command, budget_bytes=None, profile="h200", library="spillway", **settings):
        path = BUILD / "lib" / f"lib{library}.so" if budget_bytes else None
        env = simulated_gpu.environment(BUILD, path, budget_bytes, profile)
        env["SPILLWAY_SIM_COMPUTE"] = "tags"
        env.update({f"SPILLWAY_{name}": value for name, value in settings.items()})
        program, *arguments = command.split()
        run = simulated_gpu.run([BUILD / "workloads" / program, *arguments], env, QUIET_S)
        self.assertEqual(run.exit_code, 0, run.errors)
        return run

    def test_results_are_the_same_at_any_budget(self):
        for profile, command in (("h200", RESNET + " --steps=3"),
                                 ("a100", "convnet --model=vgg16 --image=224 --batch=64 --images=64 --steps=3"),
                                 ("1080ti", "gpt --layers=12 --width=768 --heads=12 --sequence=1024 --batch=4 "
                                            "--vocabulary=50257 --steps=3")):
            bare = self.bare(command, profile)
            self.assertGreater(bare.statistics["device_bytes_peak"], 7 * GIB)
            for percent in (100, 50, 25):
                with self.subTest(profile=profile, command=command, percent=percent):
                    budget_bytes = bare.statistics["device_bytes_peak"] * percent // 100
                    run = self.run_trainer(command, budget_bytes, profile)
                    self.assertEqual(run.output, bare.output)
                    self.assertEqual(run.statistics["violations"], [])
                    self.assertLessEqual(run.statistics["device_bytes_peak"], budget_bytes)

    def test_checksum_does_not_depend_on_bytes_from_before_the_weights(self):
        """Regression: the weights do not fit, so later ones are initialised where earlier ones
        were. Operations left the bytes between their tags unchanged. The checksum, which reads
        all bytes, then depended on how memory was reused; the losses did not."""
        command = "gpt --layers=4 --width=1024 --heads=16 --sequence=512 --batch=1 --vocabulary=4096 --steps=1"
        bare = self.run_trainer(command)
        for budget_mib in (100, 160):
            with self.subTest(budget_mib=budget_mib):
                run = self.run_trainer(command, budget_mib << 20)
                self.assertGreater(run.statistics["h2d_bytes"], bare.statistics["h2d_bytes"])
                self.assertEqual(run.output, bare.output)

    def test_trainers_are_proven(self):
        """Regression: two adjacent tokens of gpt2 equalled the address of a tensor that was
        allocated there later; the job parked for good."""
        gpt2 = "gpt --layers=12 --width=768 --heads=12 --sequence=1024 --batch=8 --vocabulary=50257"
        with tempfile.TemporaryDirectory(prefix="tags-test-") as folder:
            report = pathlib.Path(folder) / "report.json"
            for command, budget_mib in ((gpt2 + " --steps=12", 7014), (gpt2 + " --steps=6 --allocator=arena", 7014),
                                        (RESNET + " --steps=6", 4000), (RESNET + " --steps=6 --allocator=arena", 4000)):
                with self.subTest(command=command):
                    run = self.run_trainer(command, budget_mib << 20, "a100", LEARN="wait", REPORT=str(report),
                                           HOST_LIMIT=str(64 * GIB))
                    self.assertGreater(run.statistics["d2h_bytes"], GIB)
                    reported = json.loads(report.read_text())
                    self.assertEqual(reported["pointers"], "proven")
                    # Regression: the trainers' modules have a constant, and were never repeated then.
                    self.assertNotIn("may keep state elsewhere",
                                     [kernel["because"] for kernel in reported["unrepeated_kernels_of"]])

    def test_tensors_in_one_allocation_larger_than_the_budget_move_in_parts(self):
        command = ("gpt --layers=4 --width=768 --heads=12 --sequence=512 --vocabulary=8192 --batch=4 --steps=7 "
                   "--allocator=arena --arena=1400MiB")
        bare, reported = self.bare(command), {}
        with tempfile.TemporaryDirectory(prefix="tags-test-") as folder:
            for learn in ("off", "wait"):
                report = pathlib.Path(folder) / f"{learn}.json"
                run = self.run_trainer(command, 700 << 20, LEARN=learn, REPORT=str(report), HOST_LIMIT=str(8 * GIB))
                reported[learn] = json.loads(report.read_text())
                self.assertEqual(run.output, bare.output)
                self.assertEqual(run.statistics["violations"], [])
                self.assertLessEqual(run.statistics["device_bytes_peak"], 700 << 20)
                self.assertEqual(reported[learn]["arenas"], 1)
        # With a plan, what the next calls need comes along.
        self.assertLess(reported["wait"]["idle_waits"], 0.75 * reported["off"]["idle_waits"])
        self.assertLess(reported["wait"]["restored_bytes"], reported["off"]["restored_bytes"])

    def test_runs_without_arithmetic_need_little_memory(self):
        command = "convnet --model=resnet152 --image=224 --batch=128 --images=128 --steps=2"
        host_bytes, device_bytes = self.bare_peaks(command)
        self.assertGreater(device_bytes, 30 * GIB)
        self.assertLess(host_bytes, 4 * GIB)
        # Maximum of all runs so far. Those that learn compare outputs on the host, where zero pages
        # take no memory.
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10, 4 * GIB)

    def bare_peaks(self, command):
        """Memory of that run alone: of the host, and of the simulated device."""
        with tempfile.TemporaryDirectory(prefix="tags-test-") as folder:
            statistics = pathlib.Path(folder) / "statistics.json"
            env = {**simulated_gpu.environment(BUILD, None, None, "h200"), "SPILLWAY_SIM_COMPUTE": "tags",
                   "SPILLWAY_SIM_STATS": str(statistics)}
            program, *arguments = command.split()
            silent = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
            pid = os.posix_spawn(BUILD / "workloads" / program, [program, *arguments], env, file_actions=silent)
            _, status, usage = os.wait4(pid, 0)
            self.assertEqual(status, 0)
            return usage.ru_maxrss << 10, json.loads(statistics.read_text())["device_bytes_peak"]

    def test_time_is_the_same_in_every_run(self):
        runs = [self.run_trainer(RESNET + " --steps=3 --times") for _ in range(2)]
        self.assertRegex(runs[0].errors, "step 3 took")
        self.assertEqual(runs[0].errors, runs[1].errors)

    def test_leaving_out_a_rule_changes_the_results(self):
        command = RESNET + " --steps=3"
        bare = self.bare(command)
        under = {"library": "spillway_breakable", "PARK": "off", "LEARN": "off"}
        self.assertEqual(self.run_trainer(command, 4 * GIB, **under).output, bare.output)
        # Bytes that an outdated host copy would lose are copied out again after a kernel of unknown
        # effect: that is a second rule.
        for rule in ("kTouchOutdatesHostCopy,kHostCopiesAreVerified", "kUseFollowsRestore"):
            with self.subTest(rule=rule):
                self.assertNotEqual(self.run_trainer(command, 4 * GIB, BREAK_RULE=rule, **under).output, bare.output)


if __name__ == "__main__":
    BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main(verbosity=2)

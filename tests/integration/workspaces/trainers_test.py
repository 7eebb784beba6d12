#!/usr/bin/env python3
"""Trainers with large convolution workspaces: the algorithms that they are offered within a budget,
what becomes of their workspaces, and the same losses and weights, bit for bit.

    Usage: trainers_test.py BUILD_FOLDER [unittest's options]
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

MIB = 1 << 20
BUILD = ""


def read(path):
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        return json.load(file)


class Run:
    """One run of convnet: its output, our report, the simulator's statistics."""

    def __init__(self, options, budget=None, **settings):
        with tempfile.TemporaryDirectory() as folder:
            report, statistics = os.path.join(folder, "report"), os.path.join(folder, "statistics")
            simulator = os.path.join(BUILD, "simulator")
            environment = dict(os.environ, LD_LIBRARY_PATH=simulator, SPILLWAY_SIM_PROFILE="k40c",
                               SPILLWAY_SIM_STATS=statistics, SPILLWAY_SIM_COMPUTE="tags")
            environment.pop("LD_PRELOAD", None)
            if budget:
                environment.update({f"SPILLWAY_{name}": str(value) for name, value in settings.items()})
                environment.update(SPILLWAY_DRIVER=os.path.join(simulator, "libcuda.so.1"), SPILLWAY_REPORT=report,
                                   SPILLWAY_BUDGET=str(budget), LD_PRELOAD=os.path.join(BUILD, "lib", "libspillway.so"))
            command = [os.path.join(BUILD, "workloads", "convnet"), *options.split()]
            result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            self.code, self.output, self.errors = result.returncode, result.stdout, result.stderr
            self.report, self.statistics = read(report), read(statistics)


class TrainersTest(unittest.TestCase):
    # Its largest operation has 392 MiB of tensors. Its first choices have workspaces of up to 1.2 GiB.
    VGG = "--model=vgg11 --batch=32 --image=224 --steps=4 --workspace=2GiB"

    def ran(self, options, budget=None, **settings):
        run = Run(options, budget, **settings)
        self.assertEqual(run.code, 0, run.errors)
        self.assertEqual(run.statistics["violations"], [])
        self.assertEqual(run.statistics["illegal_accesses"], 0)
        if budget:
            self.assertLessEqual(run.statistics["device_bytes_peak"], budget)
        return run

    def test_same_bytes_where_the_bare_choice_fits(self):
        bare = self.ran(self.VGG)
        run = self.ran(self.VGG, bare.statistics["device_bytes_peak"] * 9 // 10)
        self.assertEqual(run.output, bare.output)
        self.assertEqual(run.report["other_algorithms"], 0)

    def test_kept_workspace_leaves_without_a_copy(self):
        kept = "--model=resnet18 --batch=64 --image=128 --steps=14 --workspace=512MiB --keep-workspace"
        bare = self.ran(kept)
        for learn in ("off", "wait"):
            with self.subTest(learn=learn):
                run = self.ran(kept, bare.statistics["device_bytes_peak"] * 6 // 10, PARK="off", LEARN=learn)
                self.assertEqual(run.output, bare.output)
                self.assertEqual(run.report["other_algorithms"], 0)
                self.assertGreater(run.report["workspace_dropped_bytes"], 0)
        # cuDNN and cuBLAS document most of its operations.
        learning = run.report["learning"]
        self.assertGreater(learning["operations"], learning["repeatable_operations"])
        self.assertGreater(learning["repeatable_operations"], 5)
        self.assertGreater(learning["effects"]["documented"], learning["operations"])

    def test_report_names_operations_whose_first_choice_cannot_fit(self):
        run = self.ran(self.VGG, 900 * MIB)
        self.assertGreater(run.report["other_algorithms"], 0)
        for other in run.report["other_algorithms_of"]:
            self.assertLess(other["offered_bytes"], other["first_choice_bytes"])
            self.assertRegex(other["operation"], r"^(forward convolution|data gradient|filter gradient) of [0-9x]+ by [0-9x]+$")

    def test_grant_of_workspace_bounds_what_is_offered(self):
        """The first choices have up to 1.2 GiB, and would fit the budget."""
        bare = self.ran(self.VGG)
        budget = bare.statistics["device_bytes_peak"] * 9 // 10
        run = self.ran(self.VGG, budget, WORKSPACE=str(64 * MIB))
        self.assertGreater(run.report["other_algorithms"], 0)
        self.assertLess(run.statistics["device_bytes_peak"], bare.statistics["device_bytes_peak"] - 256 * MIB)
        self.assertGreater(run.statistics["simulated_ns"], bare.statistics["simulated_ns"])
        wide = self.ran(self.VGG, budget, WORKSPACE=str(2048 * MIB))
        self.assertEqual(wide.output, bare.output)
        self.assertEqual(wide.report["other_algorithms"], 0)

    def test_as_bare_makes_the_bare_choice(self):
        """Its calls name more than the budget, and use the rest over the link."""
        bare = self.ran(self.VGG)
        run, fitting = self.ran(self.VGG, 900 * MIB, WORKSPACE="as-bare"), self.ran(self.VGG, 900 * MIB)
        self.assertEqual(run.output, bare.output)
        self.assertEqual(run.report["other_algorithms"], 0)
        self.assertGreater(run.report["parked_calls"], fitting.report["parked_calls"])
        self.assertGreater(run.statistics["simulated_ns"], fitting.statistics["simulated_ns"])


if __name__ == "__main__":
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main()

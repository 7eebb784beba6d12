#!/usr/bin/env python3
"""Trainings whose outputs are dropped and recomputed: the same losses and weights, bit for bit,
and no rule of the driver broken.

    Usage: convnet_test.py BUILD_FOLDER [unittest's options]
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

MIB = 1 << 20
BUILD = ""


class Run:
    """One run of the trainer: its output, our report, the simulator's statistics."""

    def __init__(self, program, options, compute, **settings):
        with tempfile.TemporaryDirectory() as folder:
            report, statistics = os.path.join(folder, "report"), os.path.join(folder, "statistics")
            simulator = os.path.join(BUILD, "simulator")
            environment = dict(os.environ, LD_LIBRARY_PATH=simulator, SPILLWAY_SIM_PROFILE="h200",
                               SPILLWAY_SIM_STATS=statistics, SPILLWAY_SIM_COMPUTE=compute)
            environment.pop("LD_PRELOAD", None)
            if settings:
                environment.update({f"SPILLWAY_{name}": str(value) for name, value in settings.items()})
                environment.update(SPILLWAY_DRIVER=os.path.join(simulator, "libcuda.so.1"), SPILLWAY_REPORT=report,
                                   LD_PRELOAD=os.path.join(BUILD, "lib", "libspillway.so"))
            command = [os.path.join(BUILD, "workloads", program), *options.split()]
            result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            self.code, self.output, self.errors = result.returncode, result.stdout, result.stderr
            self.report = self.read(report)
            self.statistics = self.read(statistics)

    @staticmethod
    def read(path):
        if not os.path.exists(path):
            return {}
        with open(path, encoding="utf-8") as file:
            return json.load(file)


class ConvnetTest(unittest.TestCase):
    def same(self, options, compute="full", program="convnet", **settings):
        """The report of a run under Spillway whose output equals that of the bare program."""
        bare = Run(program, options, compute)
        run = Run(program, options, compute, **settings)
        self.assertEqual(bare.code, 0, bare.errors)
        self.assertEqual(run.code, 0, run.errors)
        self.assertEqual(run.output, bare.output)
        self.assertEqual(run.statistics["violations"], [])
        self.assertEqual(run.statistics["illegal_accesses"], 0)
        self.assertEqual(run.report["refuted_operations"], 0)
        return run.report

    def test_every_recomputable_output_is_dropped(self):
        report = self.same("--model=resnet18 --batch=32 --image=64 --steps=2", BUDGET=120 * MIB, PARK="off",
                           RECOMPUTE="eager")
        self.assertGreater(report["proved_operations"], 5)
        self.assertGreater(report["recomputes"], 30)
        self.assertGreater(report["offloaded_bytes"], 0)

    def test_a_job_that_is_not_assumed_safe(self):
        report = self.same("--model=resnet50 --batch=32 --image=128 --steps=3", "tags", BUDGET=1200 * MIB, PARK="auto",
                           RECOMPUTE="eager")
        self.assertGreater(report["recomputes"], 50)

    def test_a_budget_that_becomes_too_small_for_an_output_and_its_inputs(self):
        self.same("--model=resnet18 --batch=16 --image=64 --steps=3", "tags", BUDGET=73558163, PARK="auto", RECOMPUTE="eager",
                  BUDGET_SCHEDULE="62:196677065,177:209995157,255:171587714,291:76390759,360:116912543,498:87086491,"
                                  "515:196819121,611:41456287")

    def test_a_call_larger_than_the_budget_before_a_new_kernel(self):
        self.same("--model=resnet18 --batch=16 --image=64 --steps=3", "tags", BUDGET=94121097, PARK="auto", RECOMPUTE="eager",
                  BUDGET_SCHEDULE="33:89955839,47:24993856,90:111481176,113:76179496,152:96307627,166:68945335,"
                                  "210:205675131,247:158773532,258:96931748,322:128926193,334:61172375,371:225313267")

    def test_a_plan_recomputes(self):
        report = self.same("--model=resnet50 --batch=32 --image=128 --steps=12", "tags", BUDGET=776 * MIB, PARK="off",
                           LEARN="wait")
        self.assertGreater(report["recomputes"], 50)
        self.assertLess(report["demand_recomputes"], report["recomputes"] / 10)

    def test_a_plan_drops_late_freed_buffers_without_recomputing_them(self):
        """All activations and gradients are freed at the end of a step, when filters and scales
        have already changed."""
        report = self.same("--epochs=16 --batch=1024 --blocks=4 --width=128", "tags", "digits_cnn", BUDGET=840 * MIB, PARK="off",
                           LEARN="wait")
        self.assertGreater(report["planned_iterations"], 10)
        self.assertGreater(report["recompute_drops"], 200)
        self.assertLess(report["recomputes"], report["recompute_drops"] / 2)
        self.assertLess(report["demand_recomputes"], report["recompute_drops"] / 20)


if __name__ == "__main__":
    BUILD = sys.argv.pop(1)
    unittest.main()

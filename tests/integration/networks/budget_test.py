#!/usr/bin/env python3
"""The trainer's networks with branches, groups, dropout and local response normalization: the same
losses and weights in less memory than they want, bit for bit.

    Usage: budget_test.py BUILD_FOLDER [unittest's options]
"""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))

import simulated_gpu  # noqa: E402  (path set above)

BUILD = pathlib.Path()
QUIET_S = 120


class BudgetTest(unittest.TestCase):
    def run_trainer(self, options, budget_bytes=None, compute="full"):
        library = BUILD / "lib" / "libspillway.so" if budget_bytes else None
        environment = {**simulated_gpu.environment(BUILD, library, budget_bytes), "SPILLWAY_SIM_COMPUTE": compute}
        run = simulated_gpu.run([BUILD / "workloads" / "convnet", *options.split()], environment, QUIET_S)
        self.assertEqual(run.exit_code, 0, run.errors)
        self.assertEqual(run.statistics["violations"], [])
        self.assertEqual(run.statistics["not_supported"], {})
        return run

    def assert_same_below_its_peak(self, options, percent, compute):
        bare = self.run_trainer(options, compute=compute)
        budget_bytes = bare.statistics["device_bytes_peak"] * percent // 100
        run = self.run_trainer(options, budget_bytes, compute)
        self.assertEqual(run.output, bare.output)
        self.assertLessEqual(run.statistics["device_bytes_peak"], budget_bytes)
        self.assertGreater(run.statistics["h2d_bytes"], bare.statistics["h2d_bytes"])
        return bare

    def test_computed_networks(self):
        """Tensors of such small images are too small to move; an arena's segments are not."""
        for options in ("--model=googlenet --image=32 --batch=4 --steps=2", "--model=resnext50 --image=32 --batch=1 --steps=1"):
            with self.subTest(options=options):
                self.assert_same_below_its_peak(options + " --classes=4 --allocator=arena", 60, "full")

    def test_network_at_the_size_of_its_images(self):
        self.assert_same_below_its_peak("--model=inception_v4 --image=299 --batch=2 --images=2 --steps=2", 60, "tags")

    def test_dropout_draws_the_same_masks(self):
        self.assert_same_below_its_peak("--model=alexnet --image=67 --batch=32 --images=32 --steps=2", 60, "tags")


if __name__ == "__main__":
    BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main(verbosity=2)

#!/usr/bin/env python3
"""When a run counts as hanging, and when as starved by other load on the machine."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import simulated_gpu  # noqa: E402


class SpendingTest(unittest.TestCase):
    def test_counts_from_its_start(self):
        spending = simulated_gpu.Spending({"1": (5.0, 7.0)})
        spending.look({"1": (5.5, 9.0)})
        self.assertEqual((spending.computing_s, spending.waiting_s), (0.5, 2.0))

    def test_an_ended_thread_does_not_lower_the_count(self):
        """Regression: the waits of new threads were set off against those of ended ones. A
        starved program was killed as if it hung."""
        spending = simulated_gpu.Spending({"1": (0.0, 0.0), "2": (1.0, 15.0)})
        spending.look({"1": (0.0, 0.0), "3": (0.5, 4.0)})
        spending.look({"1": (0.0, 0.0), "3": (1.0, 9.0)})
        spending.look({"1": (0.0, 0.0)})
        self.assertEqual((spending.computing_s, spending.waiting_s), (1.0, 9.0))

    def test_a_reused_thread_number_counts_from_its_start(self):
        spending = simulated_gpu.Spending({"2": (1.0, 15.0)})
        spending.look({"2": (0.5, 4.0)})
        spending.look({"2": (0.75, 5.0)})
        self.assertEqual((spending.computing_s, spending.waiting_s), (0.25, 1.0))


class AwaitEndTest(unittest.TestCase):
    def end_of(self, command, quiet_s):
        with tempfile.NamedTemporaryFile() as output:
            process = subprocess.Popen(command, stdout=output)
            return simulated_gpu.await_end(process, pathlib.Path(output.name), quiet_s)

    def test_a_program_that_sleeps_for_ever_is_killed(self):
        self.assertIsNone(self.end_of(["sleep", "1000"], 0.5))

    def test_a_program_that_computes_for_ever_is_killed(self):
        self.assertIsNone(self.end_of([sys.executable, "-c", "while True: pass"], 0.5))

    def test_a_program_that_ends_reports_its_status(self):
        self.assertEqual(self.end_of([sys.executable, "-c", "raise SystemExit(7)"], 60), 7)


if __name__ == "__main__":
    unittest.main()

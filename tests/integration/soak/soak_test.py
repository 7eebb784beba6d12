#!/usr/bin/env python3
"""A long job with changing iterations, at half its peak: the same output as bare, and no growth
over time.

    Usage: soak_test.py BUILD_FOLDER [ITERATIONS, default 1000] [unittest's options]

Runs tests/workloads/drifter on the simulated GPU, in the compute mode `tags`.
"""
import json
import pathlib
import re
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import simulated_gpu  # noqa: E402

MIB = 1 << 20
BUILD = pathlib.Path()
ITERATIONS = 1000
QUIET_S = 1200
LAUNCHES = 37  # of an iteration
BUDGET_CHANGES = 400  # iterations between them
GROWTH_KIB = 2048  # growth allowed in the second half: some memory is allocated at first use
HELD = re.compile(r"^iteration \d+ resident_kib (\d+) mappings (\d+) files (\d+)$", re.MULTILINE)


def less_and_as_much_again(budget_bytes):
    """Switches between three quarters of the budget and all of it, for as long as the job lasts."""
    less_bytes = budget_bytes * 3 // 4 // (2 * MIB) * (2 * MIB)
    turns = range(1, ITERATIONS // BUDGET_CHANGES + 1)
    return ",".join(f"{LAUNCHES * BUDGET_CHANGES * i}:{less_bytes if i % 2 else budget_bytes}" for i in turns)


def drift(budget_bytes=None, *options, **settings):
    library = BUILD / "lib" / "libspillway.so" if budget_bytes else None
    env = simulated_gpu.environment(BUILD, library, budget_bytes, "a100")
    env["SPILLWAY_SIM_COMPUTE"] = "tags"
    env.update({f"SPILLWAY_{name}": value for name, value in settings.items()})
    with tempfile.TemporaryDirectory(prefix="spillway-soak-") as folder:
        report = pathlib.Path(folder) / "report.json"
        env["SPILLWAY_REPORT"] = str(report)
        command = [BUILD / "workloads" / "drifter", f"--iterations={ITERATIONS}", *options]
        run = simulated_gpu.run(command, env, QUIET_S)
        run.report = json.loads(report.read_text()) if report.exists() else {}
    return run


class SoakTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.bare = drift()
        cls.budget_bytes = cls.bare.statistics["device_bytes_peak"] // 2 // (2 * MIB) * (2 * MIB)
        cls.job = drift(cls.budget_bytes, BUDGET_SCHEDULE=less_and_as_much_again(cls.budget_bytes))
        print(f"{ITERATIONS} iterations:", cls.job.report.get("learning"), file=sys.stderr)
        print(cls.job.errors, file=sys.stderr)

    def test_results_are_the_same_and_the_budget_holds(self):
        self.assertEqual((self.bare.exit_code, self.job.exit_code), (0, 0), self.job.errors)
        self.assertEqual(self.job.output, self.bare.output)
        self.assertEqual(self.job.statistics["violations"], [])
        self.assertEqual(self.job.statistics["unmapped_while_in_use"], 0)
        self.assertLessEqual(self.job.statistics["device_bytes_peak"], self.budget_bytes)

    def test_changes_are_detected_and_plans_are_followed_between_them(self):
        self.assertGreaterEqual(self.job.report["learning"]["plans_adopted"], 2)
        self.assertGreater(self.job.report["planned_iterations"], ITERATIONS // 10)
        self.assertGreater(self.job.report["recomputes"], 0)
        self.assertEqual(self.job.report["budget_changes"], ITERATIONS // BUDGET_CHANGES)

    def test_nothing_grows(self):
        held = [tuple(map(int, line)) for line in HELD.findall(self.job.errors)]
        self.assertEqual(len(held), 20, self.job.errors)
        early, late = ([max(column) for column in zip(*half)] for half in (held[4:10], held[-6:]))
        self.assertLessEqual(late[0], early[0] + GROWTH_KIB, "resident KiB")
        # Freed ranges keep their mappings, up to a bound; how many chunks each has varies with the sizes.
        self.assertLessEqual(late[1], early[1] * 1.1 + 8, "mappings")
        self.assertLessEqual(late[2], early[2], "open files")

    def test_physical_memory_is_reused(self):
        # Handles never exceed the budget's worth of the smallest size, on the device and for
        # evicted memory on the host. A range that is mapped takes pieces at hand; one is created
        # at most, where they do not fit. So maps are few, too: a range here needs one.
        statistics, most = self.job.statistics, self.budget_bytes // (2 * MIB)
        self.assertLessEqual(statistics["vmm_creates"] - statistics["vmm_releases"], 2 * most)
        self.assertLess(statistics["vmm_creates"], statistics["vmm_maps"])
        self.assertLess(statistics["vmm_maps"], LAUNCHES * ITERATIONS * 3 // 2)


class AdversaryTest(unittest.TestCase):
    """Iterations that change as soon as they are learned, with plans made in the calling thread."""

    def same(self, options, **settings):
        bare = drift(None, *options)
        budget_bytes = bare.statistics["device_bytes_peak"] // 2 // (2 * MIB) * (2 * MIB)
        run = drift(budget_bytes, *options, LEARN="wait", **settings)
        self.assertEqual(run.exit_code, 0, run.errors)
        self.assertEqual(run.output, bare.output)
        self.assertEqual(run.statistics["violations"], [])
        self.assertLessEqual(run.statistics["device_bytes_peak"], budget_bytes)
        return run

    def test_a_change_every_few_iterations_changes_no_byte(self):
        for period in (1, 3, 5, 8):
            with self.subTest(period=period):
                self.same(["--iterations=200", f"--period={period}"])

    def test_budgets_that_change_change_no_byte(self):
        schedule = ",".join(f"{300 * i}:{(48 if i % 2 else 60) * MIB}" for i in range(1, 14))
        run = self.same(["--iterations=200", "--period=40"], BUDGET_SCHEDULE=schedule)
        self.assertGreaterEqual(run.report["budget_changes"], 10)
        self.assertGreater(run.report["planned_iterations"], 0)


if __name__ == "__main__":
    BUILD = pathlib.Path(sys.argv[1]).resolve()
    rest = sys.argv[2:]
    if rest and rest[0].isdigit():
        ITERATIONS = int(rest.pop(0))
    unittest.main(argv=[sys.argv[0], *rest])

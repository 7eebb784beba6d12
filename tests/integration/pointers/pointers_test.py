#!/usr/bin/env python3
"""The workload `pointers` under budgets prints the same lines as bare, whatever its kernels
follow.

    usage: pointers_test.py BUILD_DIR [unittest's options]
"""

import functools
import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import simulated_gpu  # noqa: E402

MIB = 1 << 20
BUILD = pathlib.Path()
QUIET_S = 60
BROKEN_QUIET_S = 8  # a broken build may follow pointers without end; a correct run takes two seconds
# Scenes with addresses that copies put into memory, and scenes with hidden ones: written by
# kernels, or read from host memory.
COPIED = ["uploaded", "copied", "global", "constant"]
HIDDEN = ["written", "list", "globallist", "tree", "host", "late"]
ALL = [*COPIED, *HIDDEN, "rewritten", "batched"]


@functools.cache
def bare(*options):
    run = simulated_gpu.run([BUILD / "workloads/pointers", *options], simulated_gpu.environment(BUILD), QUIET_S)
    assert run.exit_code == 0, run.errors
    return run


class PointersTest(unittest.TestCase):
    def under(self, budget_bytes, *options, library="spillway", quiet_s=QUIET_S, **settings):
        """A run under Spillway and its report. Settings are environment variables without their
        first word."""
        with tempfile.TemporaryDirectory(prefix="spillway-pointers-") as folder:
            report = pathlib.Path(folder) / "report.json"
            environment = simulated_gpu.environment(BUILD, BUILD / f"lib/lib{library}.so", budget_bytes)
            environment.update({f"SPILLWAY_{name}": value for name, value in settings.items()}, SPILLWAY_REPORT=str(report))
            run = simulated_gpu.run([BUILD / "workloads/pointers", *options], environment, quiet_s)
            return run, json.loads(report.read_text()) if report.exists() else {}

    def same(self, budget_bytes, *options, **settings):
        run, report = self.under(budget_bytes, *options, **settings)
        self.assertEqual(run.exit_code, 0, run.errors)
        self.assertEqual(run.output, bare(*options).output)
        self.assertEqual(run.statistics["violations"], [])
        self.assertEqual(run.statistics["illegal_accesses"], 0)
        self.assertEqual(run.statistics["unmapped_while_in_use"], 0)
        self.assertLessEqual(run.statistics["device_bytes_peak"], budget_bytes)
        return report


class SameBytesTest(PointersTest):
    def test_all_scenes_at_shares_of_their_peak(self):
        peak = self.same(1024 * MIB)["wanted_peak_bytes"]
        for park, percent in (("auto", 100), ("auto", 50), ("auto", 25), ("auto", 10), ("host", 50), ("host", 10)):
            with self.subTest(park=park, percent=percent):
                report = self.same(peak * percent // 100, PARK=park)
                self.assertEqual(report["evictions"] > 0, percent < 100)

    def test_each_scene_alone(self):
        for scene in ALL:
            for park in ("auto", "host"):
                with self.subTest(scene=scene, park=park):
                    self.assertGreater(self.same(24 * MIB, f"--scenes={scene}", "--steps=3", PARK=park)["evictions"], 0)

    def test_scenes_long_after_the_job_was_proven(self):
        for scene in ("rewritten", "late"):  # StandingTest compares what those of COPIED print, in the same runs
            with self.subTest(scene=scene):
                self.same(36 * MIB, f"--scenes={scene}", "--steps=40")

    def test_copied_pointers_are_followed_without_parking(self):
        for scene in (*COPIED, "rewritten"):
            with self.subTest(scene=scene):
                report = self.same(36 * MIB, f"--scenes={scene}", "--steps=8", PARK="off")
                self.assertGreater(report["evictions"], 0)
                self.assertEqual(report["parked_peak_bytes"], 0)


class StandingTest(PointersTest):
    """What the report says of a job whose launches reach less than half of the budget."""

    def test_job_with_copied_pointers_only_is_proven_and_moves_memory_while_kernels_run(self):
        for scene in COPIED:
            with self.subTest(scene=scene):
                report = self.same(36 * MIB, f"--scenes={scene}", "--steps=40")
                self.assertEqual(report["pointers"], "proven")
                self.assertLess(report["idle_waits"], report["evictions"] // 4)
                self.assertEqual(report["idle_waits_given_up"], 0)

    def test_job_whose_kernels_write_pointers_is_unsafe_for_good(self):
        for scene in ("written", "list", "tree"):
            with self.subTest(scene=scene):
                report = self.same(24 * MIB, f"--scenes={scene}", "--steps=10")
                self.assertEqual(report["pointers"], "unsafe")
                self.assertEqual(report["unsafe_because"], "memory holds addresses that no copy put there")
                self.assertGreater(report["parked_peak_bytes"], 0)

    def test_job_that_reaches_more_than_half_of_the_budget_parks(self):
        report = self.same(20 * MIB, "--scenes=global", "--steps=40")
        self.assertEqual(report["pointers"], "unsafe")
        self.assertIn("more than half", report["unsafe_because"])

    def test_forced_parking(self):
        report = self.same(24 * MIB, "--scenes=uploaded", "--steps=10", PARK="host")
        self.assertEqual(report["pointers"], "unsafe")
        self.assertEqual(report["unsafe_because"], "")
        self.assertGreaterEqual(report["idle_waits"], report["evictions"] // 2)
        self.assertEqual(report["full_scans"], 0)

    def test_job_below_its_budget_neither_waits_nor_scans(self):
        report = self.same(1024 * MIB, "--scenes=list,uploaded")
        self.assertEqual((report["idle_waits"], report["full_scans"], report["parked_peak_bytes"]), (0, 0, 0))


class WithoutParkingTest(PointersTest):
    """A driver that cannot map host memory at device addresses."""

    def test_copied_pointers_are_followed(self):
        report = self.same(36 * MIB, "--scenes=uploaded,copied", "--steps=20", SIM_HOST_NUMA="0")
        self.assertGreater(report["evictions"], 0)
        self.assertEqual(report["parked_peak_bytes"], 0)

    def test_unsafe_job_evicts_nothing_and_reports_it(self):
        run, report = self.under(24 * MIB, "--scenes=list", SIM_HOST_NUMA="0", SUMMARY="1")
        self.assertEqual(run.exit_code, 1)
        self.assertIn("cudaMalloc(&address_, size_bytes) failed: out of memory", run.errors)
        self.assertIn("nothing was evicted (memory holds addresses that no copy put there", run.errors)
        self.assertEqual(report["pointers"], "not evicted")
        self.assertEqual(report["evictions"], 0)
        self.assertEqual(run.statistics["illegal_accesses"], 0)

    def test_forced_parking_evicts_nothing(self):
        run, report = self.under(24 * MIB, "--scenes=uploaded", SIM_HOST_NUMA="0", PARK="host")
        self.assertIn("out of memory", run.errors)
        self.assertEqual(report["pointers"], "not evicted")


class PlantedFaultTest(PointersTest):
    """Leaves each ordering rule out once; the scene that depends on it must fail."""

    def test_missing_rules_are_detected(self):
        for rule, scene, park in (("kPayloadsAreScanned", "uploaded", "off"), ("kCopiesBringAddresses", "copied", "off"),
                                  ("kEvictedMemoryIsParked", "written", "host"), ("kNewKernelsAreNoted", "late", "auto")):
            with self.subTest(rule=rule):
                options = (f"--scenes={scene}", "--steps=40")
                self.same(36 * MIB, *options, library="spillway_breakable", PARK=park)
                run, _ = self.under(36 * MIB, *options, library="spillway_breakable", quiet_s=BROKEN_QUIET_S, PARK=park,
                                    BREAK_RULE=rule)
                self.assertFalse(run.exit_code == 0 and run.output == bare(*options).output, "the fault was not noticed")

    def test_missing_rules_for_hidden_pointers_are_detected(self):
        for rule, test in (("kVariablesAreFound", "DeviceVariableSetByAKernelWhileTheBufferIsEvicted"),
                           ("kHostMemoryIsRead", "PinnedTableWrittenByTheHostWhileTheBufferIsEvicted"),
                           ("kHostCopiesAreVerified", "AddressThatAKernelStoresEncoded")):
            with self.subTest(rule=rule):
                self.assertTrue(self.passes(test, ""))
                self.assertFalse(self.passes(test, rule), "the fault was not noticed")

    def passes(self, test, rule):
        """Runs a regression test under the library that lacks the rule. After a fault every call
        fails, and the first failure ends it."""
        environment = simulated_gpu.environment(BUILD, BUILD / "lib/libspillway_breakable.so")
        environment["SPILLWAY_BREAK_RULE"] = rule
        program = BUILD / "tests-bin/regression_hidden_pointers_test"
        run = simulated_gpu.run([program, "--gtest_break_on_failure", f"--gtest_filter=*.{test}"], environment, BROKEN_QUIET_S if rule else QUIET_S)
        return run.exit_code == 0


if __name__ == "__main__":
    BUILD = pathlib.Path(sys.argv[1])
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])

#!/usr/bin/env python3
"""Each sample runs under Spillway at 30 % of its own peak, and at the smallest budget, as it does
bare: same output, same exit code, clean statistics.

    Usage: samples_test.py BUILD_FOLDER SAMPLE...
"""
import json
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT / "tools")]
sys.dont_write_bytecode = True
import simulated_gpu  # noqa: E402
from try_program_parts.running import smallest_budget_bytes  # noqa: E402

MIB = 1 << 20
BUILD = pathlib.Path()
PERCENT = 30


def run(sample, library=None, budget_bytes=None, **settings):
    program = BUILD / "workloads" / "samples" / sample
    environment = simulated_gpu.environment(BUILD, library, budget_bytes)
    return simulated_gpu.run([program], {**environment, **settings}, quiet_s=120)


def report_of(sample, budget_bytes):
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        ended = run(sample, BUILD / "lib" / "libspillway.so", budget_bytes, SPILLWAY_REPORT=str(report))
        return ended, json.loads(report.read_text()) if report.exists() else {}


class SamplesTest(unittest.TestCase):
    def expect_clean(self, ended):
        self.assertEqual(ended.exit_code, 0, ended.errors)
        self.assertEqual(ended.statistics["violations"], [])
        self.assertEqual(ended.statistics["not_supported"], {})
        self.assertEqual(ended.statistics["unmapped_while_in_use"], 0)
        self.assertEqual(ended.statistics["illegal_accesses"], 0)

    def expect_same_within_budgets(self, sample):
        bare = run(sample)
        self.expect_clean(bare)
        self.assertNotEqual(bare.output, "")
        report = self.expect_same(sample, bare, bare.statistics["device_bytes_peak"] * PERCENT // 100)
        self.assertGreater(report["evictions"], 0, "the sample fits its budget: it shows nothing")
        self.expect_same(sample, bare, smallest_budget_bytes())

    def expect_same(self, sample, bare, budget_bytes):
        ended, report = report_of(sample, budget_bytes)
        self.assertEqual(ended.errors, bare.errors)
        self.expect_clean(ended)
        self.assertEqual(ended.output, bare.output)
        self.assertLessEqual(ended.statistics["device_bytes_peak"], budget_bytes)
        return report

    def test_one_program_has_one_ledger_whatever_its_default_stream(self):
        """T20: linked for the legacy and for the per-thread default stream."""
        fields = ("allocations", "frees", "launches", "wanted_peak_bytes", "passed_through")
        ledgers = [{field: report_of(sample, 256 * MIB)[1][field] for field in fields}
                   for sample in ("vector_add", "vector_add_per_thread")]
        self.assertEqual(ledgers[0], ledgers[1])


def add_case(sample):
    setattr(SamplesTest, f"test_{sample}", lambda self: self.expect_same_within_budgets(sample))


if __name__ == "__main__":
    BUILD = pathlib.Path(sys.argv[1])
    for name in sys.argv[2:]:
        add_case(name)
    unittest.main(argv=sys.argv[:1])

"""tools/symbols.py accepts the current list of the driver's symbols and refuses each kind of
mistake.

    symbols_test.py --include FOLDER [--stub LIBRARY] --compiler COMPILER
"""
import argparse
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
TABLE = (ROOT / "interposer/driver/hook_table.inc").read_text()
OPTIONS = []


def faults(table):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "hook_table.inc"
        file.write_text(table)
        command = [sys.executable, ROOT / "tools/symbols.py", "--table", file, *OPTIONS]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode == 0) == (not ended.stderr), ended
    return ended.stderr.splitlines()


class SymbolsTest(unittest.TestCase):
    def expect_fault(self, old, new, fault):
        self.assertIn(old, TABLE)
        self.assertIn("hook_table.inc: " + fault, "\n".join(faults(TABLE.replace(old, new))))

    def test_every_symbol_of_the_header_and_the_stub_has_its_row(self):
        self.assertEqual(faults(TABLE), [])

    def test_a_symbol_of_the_header_without_a_row_is_named(self):
        row = "SPILLWAY_HOOK(cuMemcpyHtoDAsync_v2_ptsz, kTouches)\n"
        self.expect_fault(row, "", "cuMemcpyHtoDAsync_v2_ptsz is in a header and has no row")

    def test_a_row_without_a_driver_symbol_is_named(self):
        self.expect_fault("(cuInit,", "(cuInitialise,", "cuInitialise is no symbol of the driver")

    def test_a_symbol_with_two_rows_is_named(self):
        row = "SPILLWAY_HOOK(cuInit, kHarmless)\n"
        self.expect_fault(row, row + row, "cuInit stands there twice")

    def test_a_function_that_touches_memory_without_hook_or_reason_is_named(self):
        self.expect_fault("SPILLWAY_HOOK(cuLaunchKernel_ptsz, kTouches)", "SPILLWAY_PASS(cuLaunchKernel_ptsz, kTouches)",
                          "cuLaunchKernel_ptsz is kTouches and passed through without a reason")

    def test_forms_of_one_function_with_different_classes_are_named(self):
        self.expect_fault("SPILLWAY_HOOK(cuMemFreeAsync_ptsz, kManaged)", "SPILLWAY_HOOK(cuMemFreeAsync_ptsz, kHarmless)",
                          "cuMemFreeAsync: its forms differ in class: cuMemFreeAsync kManaged, "
                          "cuMemFreeAsync_ptsz kHarmless")

    def test_a_hook_with_a_reason_for_having_none_is_named(self):
        self.expect_fault("SPILLWAY_HOOK(cuInit, kHarmless)", 'SPILLWAY_HOOK(cuInit, kHarmless, "needs none")',
                          "cuInit is hooked, but says why not")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--include", required=True)
    parser.add_argument("--stub")
    parser.add_argument("--compiler", default="c++")
    chosen = parser.parse_args()
    OPTIONS = [f"--{name}={value}" for name, value in vars(chosen).items() if value]
    unittest.main(argv=sys.argv[:1])

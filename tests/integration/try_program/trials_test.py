#!/usr/bin/env python3
"""tools/try_program tries small programs of ours on the simulated GPU.

    usage: trials_test.py BUILD [unittest arguments]
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import skips  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
BUILD = None
NVCC = shutil.which("nvcc")


def ask(*words):
    command = [sys.executable, ROOT / "tools" / "try_program", "--build", BUILD, "--quiet", *words]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)


def trials_of(*words):
    ended = ask("--json", *words)
    return ended.returncode, {trial["name"]: trial for trial in json.loads(ended.stdout)}


def rows_of(trial):
    return {row["label"]: row for row in trial["rows"]}


class TrialsTest(unittest.TestCase):
    def test_a_program_does_the_same_in_less_memory(self):
        """Its times, address and process id differ from run to run; its sum and its file do not."""
        code, trials = trials_of(PROGRAMS / "same")
        self.assertEqual((code, trials["same"]["verdict"]), (0, "same"), trials)
        rows = rows_of(trials["same"])
        self.assertEqual(list(rows), ["no budget", "50 %", "30 %", "smallest"])
        for label in ("50 %", "30 %", "smallest"):
            self.assertGreater(rows[label]["offloaded_bytes"], 0)
            self.assertLessEqual(rows[label]["held_bytes"], rows[label]["budget_bytes"])
            self.assertGreater(rows[label]["slow_down"], 1)
        self.assertEqual(trials["same"]["peak_bytes"], 64 << 20)
        self.assertEqual(trials["same"]["lacks"], [])

    def test_one_source_file_definitions_and_arguments_are_taken(self):
        code, trials = trials_of("--host", "-D", "ROWS=12", "--shares", "40", PROGRAMS / "same" / "same.cu", "--", "one")
        self.assertEqual(code, 0, trials)
        self.assertEqual(list(rows_of(trials["same"])), ["no budget", "40 %", "smallest"])
        self.assertEqual(trials["same"]["peak_bytes"], 48 << 20)

    @unittest.skipUnless(NVCC, "needs nvcc")
    def test_a_binary_with_its_kernels_beside_it_is_taken(self):
        with tempfile.TemporaryDirectory() as folder:
            code, _ = trials_of("--keep", folder, PROGRAMS / "same")
            self.assertEqual(code, 0)
            code, trials = trials_of(pathlib.Path(folder) / "1" / "same")
        self.assertEqual((code, trials["same"]["verdict"]), (0, "same"))

    def test_several_programs_have_a_line_each_and_a_summary(self):
        """One differs because it prints the free memory, one needs what the simulator lacks, one prints a random number."""
        ended = ask("--host", PROGRAMS / "free_memory", PROGRAMS / "needs_ptx", PROGRAMS / "unsteady")
        self.assertEqual(ended.returncode, 1, ended.stdout + ended.stderr)
        self.assertRegex(ended.stdout, r"(?m)^free_memory .*same.*differs")
        self.assertRegex(ended.stdout, r"smallest: output: line 1: the device's memory, which is the budget")
        self.assertRegex(ended.stdout, r"smallest: output: line 2: .*free memory")
        self.assertIn("the simulator lacks needs_ptx.cu:5: ", ended.stdout)
        self.assertRegex(ended.stdout, r"(?m)^unsteady .*same")
        self.assertIn("2 of 3 lines differ between two bare runs", ended.stdout)
        self.assertIn("3 programs: 1 same, 1 differs, 1 could not be run", ended.stdout)
        self.assertRegex(ended.stdout, r"(?m)^ +1  the simulator lacks .*: needs_ptx$")

    def test_memory_that_cannot_move_is_said_to_be_so(self):
        """Regression: a program that exports a pool was said to differ in budgets that the pool exceeds."""
        code, trials = trials_of("--host", "--shares", "100,50", PROGRAMS / "exports")
        rows = rows_of(trials["exports"])
        self.assertEqual(code, 0, trials)
        self.assertEqual((rows["100 %"]["refused_bytes"], rows["50 %"]["refused_bytes"]), (0, 24 << 20), trials)

    def test_exit_code_2_says_that_a_program_could_not_be_run(self):
        self.assertEqual(ask("--host", PROGRAMS / "needs_ptx").returncode, 2)
        self.assertEqual(ask("--host", "--exit-code", "3", PROGRAMS / "unsteady").returncode, 2)

    def test_mistakes_are_explained(self):
        self.assertIn("no such file", ask("/nowhere").stderr)
        self.assertIn("percents of the peak", ask("--shares", "200", PROGRAMS / "same").stderr)
        self.assertIn("build Spillway first", ask("--build", "/nowhere", PROGRAMS / "same").stderr)


if __name__ == "__main__":
    BUILD = pathlib.Path(sys.argv.pop(1))
    skips.main()

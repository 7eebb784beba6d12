#!/usr/bin/env python3
"""What the count of tests says of skipped ones, whole files and parts, must be true: nobody reads a passed test's output."""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.sax.saxutils

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "tests/support"))
import skips  # noqa: E402

BODIES = {
    "passes": "def test_passes(self): pass",
    "skips": "def test_skips(self): self.skipTest('no kubectl')",
    "fails": "def test_fails(self): self.fail()",
    "no class": "@classmethod\n    def setUpClass(cls): raise unittest.SkipTest('no root')\n    def test_unreached(self): pass",
}


def run_file(*bodies):
    """A test file of these bodies, a class each, run as CTest does."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "file_test.py")
        classes = "\n".join(f"class {name.title().replace(' ', '')}Test(unittest.TestCase):\n    {BODIES[name]}\n" for name in bodies)
        file.write_text(f"import sys, unittest\nsys.path.append({str(ROOT / 'tests/support')!r})\nimport skips\n{classes}\nskips.main(sys.argv[1:])\n")
        return subprocess.run([sys.executable, file], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def case(name, output, status="run", inside=""):
    return f'<testcase name="{name}" status="{status}" time="1">{inside}<system-out>{xml.sax.saxutils.escape(output)}</system-out></testcase>'


def count(*cases):
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "report.xml")
        report.write_text(f"<testsuite>{''.join(cases)}</testsuite>")
        return subprocess.run([sys.executable, ROOT / "tools/count_tests.py", report], capture_output=True, text=True)


class SkipsTest(unittest.TestCase):
    def test_a_file_whose_tests_are_all_skipped_is_skipped(self):
        ran = run_file("skips")
        self.assertEqual(ran.returncode, skips.SKIPPED)
        self.assertIn("left out: SkipsTest.test_skips: no kubectl\n", ran.stdout)

    def test_so_is_one_whose_classes_are_all_skipped(self):
        ran = run_file("no class")
        self.assertEqual(ran.returncode, skips.SKIPPED)
        self.assertIn("left out: NoClassTest: no root\n", ran.stdout)

    def test_a_file_of_which_one_test_ran_has_passed_and_names_the_others(self):
        ran = run_file("skips", "passes")
        self.assertEqual(ran.returncode, 0)
        self.assertIn("left out: SkipsTest.test_skips: no kubectl\n", ran.stdout)

    def test_a_failure_counts_before_skipped_tests(self):
        self.assertEqual(run_file("skips", "fails").returncode, 1)


class FilesTest(unittest.TestCase):
    """A file that is skipped whole would otherwise count as passed."""

    @staticmethod
    def files_that_may_skip():
        for file in ROOT.glob("tests/**/*_test.py"):
            if file.name != "skips_test.py" and re.search(r"skip(Test|Unless|If)\(|SkipTest\(", file.read_text()):
                yield file

    def test_none_that_may_skip_ends_by_unittests_own_main(self):
        for file in *self.files_that_may_skip(), ROOT / "tests/integration/agent/agent_test.py":  # its main serves others
            self.assertFalse(re.search(r"unittest\.main\(", file.read_text()), file)

    def test_ctest_knows_the_exit_code_of_each(self):
        for file in self.files_that_may_skip():
            lists = next(folder / "CMakeLists.txt" for folder in file.parents if (folder / "CMakeLists.txt").exists())
            self.assertTrue(lists.read_text().endswith("\nspillway_tests_may_skip()\n"), lists)


class CountTest(unittest.TestCase):
    def test_a_skipped_test_is_named_with_its_reason(self):
        ran = count(case("a", "fine"), case("b", "left out: no Slurm\n", "notrun", '<skipped message="SKIP_RETURN_CODE=77"/>'))
        self.assertEqual(ran.stdout.splitlines(), ["skipped: b: no Slurm", "1 passed, 0 failed, 1 skipped"])

    def test_the_reason_of_an_unknown_program_is_the_last_line_of_its_output(self):
        ran = count(case("a", "fine"), case("b", "begins\nno Slurm\n\n", "notrun", "<skipped/>"))
        self.assertIn("skipped: b: no Slurm\n", ran.stdout)

    def test_reasons_that_repeat_stand_once(self):
        output = "left out: ATest.test_a: no kubectl\nleft out: BTest: no kubectl\n"
        self.assertIn("skipped: b: no kubectl\n", count(case("a", ""), case("b", output, "notrun", "<skipped/>")).stdout)

    def test_a_part_that_was_left_out_is_named_though_the_test_passed(self):
        ran = count(case("a", run_file("skips", "passes").stdout))
        self.assertEqual(ran.stdout.splitlines(), ["skipped in part: a, 1 of its tests: no kubectl", "1 passed, 0 failed"])

    def test_a_skipped_class_beside_a_test_that_ran_is_a_part(self):
        self.assertEqual(count(case("a", run_file("no class", "passes").stdout)).stdout.splitlines(),
                         ["skipped in part: a, 1 of its tests: no root", "1 passed, 0 failed"])

    def test_unittests_own_count_serves_where_no_reason_is_said(self):
        ran = count(case("a", "s.\n-----\nRan 2 tests in 0.000s\n\nOK (skipped=1)\n"))
        self.assertEqual(ran.stdout.splitlines(), ["skipped in part: a, 1 of its tests: no reason in its output", "1 passed, 0 failed"])

    def test_a_program_that_skipped_all_its_tests_has_not_passed(self):
        ran = count(case("a", ""), case("b", "ss\n-----\nRan 2 tests in 0.000s\n\nOK (skipped=2)\n"))
        self.assertEqual(ran.stdout.splitlines(), ["skipped: b: no reason in its output", "1 passed, 0 failed, 1 skipped"])

    def test_google_tests_skips_are_named(self):
        output = ("[ RUN      ] Pool.Root\n/tree/pool_test.cpp:75: Skipped\nonly root can\n\n[  SKIPPED ] Pool.Root (0 ms)\n"
                  "[==========] 3 tests from 1 test suite ran. (1 ms total)\n[  SKIPPED ] 1 test, listed below:\n[  SKIPPED ] Pool.Root\n")
        self.assertIn("skipped in part: a, 1 of its tests: only root can\n", count(case("a", output)).stdout)

    def test_nothing_is_said_of_tests_that_ran_whole(self):
        self.assertEqual(count(case("a", "Ran 2 tests in 0.000s\n\nOK\n")).stdout, "1 passed, 0 failed\n")

    def test_skipped_tests_alone_are_no_success(self):
        self.assertEqual(count(case("b", "left out: no Slurm\n", "notrun", "<skipped/>")).returncode, 1)


if __name__ == "__main__":
    unittest.main()

"""How a Python test says what it leaves out: a line for each skipped test, and the exit code 77 where none ran.

CTest takes that code for skipped (SKIP_RETURN_CODE). tools/count_tests.py finds the lines.
"""
import sys
import unittest

SKIPPED = 77
LEFT_OUT = "left out: "


class _Result(unittest.TextTestResult):
    """Counts what ran to a good end, whole tests and parts of tests."""

    passed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        self.passed += err is None


class _Runner(unittest.TextTestRunner):
    resultclass = _Result


def leave_out(reason):
    """Ends the program, when it can run no test."""
    print(LEFT_OUT + reason, flush=True)
    sys.exit(SKIPPED)


def name_of(test):
    """'Class.test', or 'Class' when its setUpClass skipped."""
    return test.id().removeprefix("setUpClass (").rstrip(")").removeprefix("__main__.")


def run(arguments=(), module="__main__", **options):
    """Runs the module's tests; the exit code."""
    result = unittest.main(module=module, argv=[sys.argv[0], *arguments], testRunner=_Runner, exit=False, **options).result
    sys.stderr.flush()
    for test, reason in result.skipped:
        print(f"{LEFT_OUT}{name_of(test)}: {' '.join(reason.split())}", flush=True)
    if not result.wasSuccessful():
        return 1
    return 0 if result.passed else SKIPPED


def main(arguments=(), **options):
    sys.exit(run(arguments, **options))

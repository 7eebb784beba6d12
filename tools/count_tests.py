#!/usr/bin/env python3
"""Adds up ctest's JUnit reports into one last line, 'N passed, N failed'; exit code 1 when one failed or none ran.

usage: count_tests.py [--times] REPORT... [--again REPORT]

--times: first the seconds of each test, the longest first.
--again: reports of failed tests that ran once more; the second result counts, and the tests are named. Before the last line
stands the end of each failed test's output, because some logs keep only their end, and a line for each test that was skipped, whole or in
part, with the reason. A program whose tests were all skipped counts as skipped, whatever its exit code.
"""
import argparse
import collections
import re
import xml.etree.ElementTree

MOST_LINES = 12
MOST_FAILURES = 4
LEFT_OUT = "left out: "
SUMMARIES = ((r"^Ran (\d+) tests? in", r"^(?:OK|FAILED) \(.*skipped=(\d+)"),
             (r"^\[==========\] (\d+) tests? from .* ran", r"^\[  SKIPPED \] (\d+) tests?,"))
NO_REASON = "no reason in its output"


def cases_of(paths):
    return [case for path in paths for case in xml.etree.ElementTree.parse(path).iter("testcase")]


def result_of(case):
    if case.find("failure") is not None or case.get("status") == "fail":
        return "failed"
    if case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
        return "skipped"
    skipped, ran = skipped_parts(case)
    # tests/support/skips.py has given the exit code already.
    return "skipped" if skipped and skipped >= ran and LEFT_OUT not in output_of(case) else "passed"


def output_of(case):
    return case.findtext("system-out") or ""


def skipped_parts(case):
    """How many of a program's own tests were skipped, and of how many, by the summary of unittest or GoogleTest."""
    output = output_of(case)
    for ran, skipped in SUMMARIES:
        found = re.findall(ran, output, re.MULTILINE)
        if found:
            return sum(map(int, re.findall(skipped, output, re.MULTILINE))), sum(map(int, found))
    return 0, 0


def reasons_of(case):
    """Each once, of tests/support/skips.py, verbose unittest or GoogleTest."""
    output = output_of(case)
    found = re.findall(r"^left out: (?:[A-Z]\w*(?:\.test\w*)?: )?(.*)", output, re.MULTILINE)
    found = found or re.findall(r"\.\.\. skipped (['\"])(.*)\1$", output, re.MULTILINE) or re.findall(r"\.cpp:\d+: Skipped\n(.*)", output)
    reasons = [reason[1] if isinstance(reason, tuple) else reason for reason in found]
    return "; ".join(dict.fromkeys(reasons))


def print_skipped(cases):
    """The reason of a whole program that says none in our words is its last line."""
    for case in cases:
        skipped, ran = skipped_parts(case)
        reason = reasons_of(case)
        if result_of(case) == "skipped":
            lines = [line for line in output_of(case).splitlines() if line.strip()]
            last = lines[-1].strip() if lines and not ran else NO_REASON
            print(f"skipped: {case.get('name')}: {reason or last}")
        elif skipped:
            print(f"skipped in part: {case.get('name')}, {skipped} of its tests: {reason or NO_REASON}")


def end_of_output(case):
    lines = [line for line in output_of(case).splitlines() if line.strip()]
    return "".join(f"    {line[:200]}\n" for line in lines[-MOST_LINES:])


def print_times(cases):
    for case in sorted(cases, key=lambda case: float(case.get("time")), reverse=True):
        print(f"{float(case.get('time')):5.0f} s  {case.get('name')}" + (", skipped" if result_of(case) == "skipped" else ""))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("reports", nargs="+")
    parser.add_argument("--again", nargs="*", default=[])
    parser.add_argument("--times", action="store_true")
    options = parser.parse_args()
    if options.times:
        print_times(cases_of(options.reports))
    again = {case.get("name"): result_of(case) for case in cases_of(options.again)}
    counts = collections.Counter()
    failed = []
    for case in cases_of(options.reports):
        result = result_of(case)
        if result == "failed":
            failed.append(case)
            result = again.get(case.get("name"), result)
        counts[result] += 1
    for case in failed[:MOST_FAILURES]:
        then = again.get(case.get("name"))
        print(f"{case.get('name')} failed" + (f", and {then} when it ran alone" if then else "") + ":")
        print(end_of_output(case), end="")
    print_skipped(cases_of(options.reports))
    skipped = f", {counts['skipped']} skipped" if counts["skipped"] else ""
    print(f"{counts['passed']} passed, {counts['failed']} failed{skipped}")
    return 0 if counts["passed"] and not counts["failed"] else 1


if __name__ == "__main__":
    raise SystemExit(main())

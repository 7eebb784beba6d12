#!/usr/bin/env python3
"""Adds up ctest's JUnit reports into one last line, 'N passed, N failed'; exit code 1 when one failed or none ran.

usage: count_tests.py [--times] REPORT... [--again REPORT]

--times: first the seconds of each test, the longest first.
--again: reports of failed tests that ran once more; the second result counts, and the tests are named. Before the last line
stands the end of each failed test's output, because some logs keep only their end.
"""
import argparse
import collections
import xml.etree.ElementTree

MOST_LINES = 12
MOST_FAILURES = 4


def cases_of(paths):
    return [case for path in paths for case in xml.etree.ElementTree.parse(path).iter("testcase")]


def result_of(case):
    if case.find("failure") is not None or case.get("status") == "fail":
        return "failed"
    if case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
        return "skipped"
    return "passed"


def end_of_output(case):
    lines = [line for line in (case.findtext("system-out") or "").splitlines() if line.strip()]
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
    skipped = f", {counts['skipped']} skipped" if counts["skipped"] else ""
    print(f"{counts['passed']} passed, {counts['failed']} failed{skipped}")
    return 0 if counts["passed"] and not counts["failed"] else 1


if __name__ == "__main__":
    raise SystemExit(main())

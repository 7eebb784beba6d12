#!/usr/bin/env python3
"""Adds up ctest's JUnit reports into one last line, 'N passed, N failed'; exit code 1 when one failed or none ran.

Before it, the end of what each failed test said: where only the end of a log is kept, it is the part that is needed.
"""
import sys
import xml.etree.ElementTree

MOST_LINES = 12
MOST_FAILURES = 4


def end_of_output(case):
    lines = [line for line in (case.findtext("system-out") or "").splitlines() if line.strip()]
    return "".join(f"    {line[:200]}\n" for line in lines[-MOST_LINES:])


def main():
    passed = failed = skipped = 0
    failures = []
    for path in sys.argv[1:]:
        for case in xml.etree.ElementTree.parse(path).iter("testcase"):
            if case.find("failure") is not None or case.get("status") == "fail":
                failed += 1
                failures.append(f"{case.get('name')} failed:\n{end_of_output(case)}")
            elif case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
                skipped += 1
            else:
                passed += 1
    print("".join(failures[:MOST_FAILURES]), end="")
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())

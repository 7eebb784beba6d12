#!/usr/bin/env python3
"""Adds up ctest's JUnit reports into one last line, 'N passed, N failed'; exit code 1 when one failed or none ran."""
import sys
import xml.etree.ElementTree


def main():
    passed = failed = skipped = 0
    for path in sys.argv[1:]:
        for case in xml.etree.ElementTree.parse(path).iter("testcase"):
            if case.find("failure") is not None or case.get("status") == "fail":
                failed += 1
            elif case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
                skipped += 1
            else:
                passed += 1
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())

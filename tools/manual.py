#!/usr/bin/env python3
"""Writes the lists of options in the manual pages (docs/man) from the commands' tables.

    usage: manual.py [--check] [--build BUILD]

A page marks each list by a comment that names its commands. Build spillway_option_manual first.
With --check it writes nothing, and names each page that differs; the exit code is then 1.
"""
import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
LIST = re.compile(r'(\.\\" Options of ([a-z, ]+), by tools/manual\.py\n).*?(\.\\" End of the options\n)', re.DOTALL)


def options_of(command, build):
    listed = subprocess.run([build / "tests-bin/spillway_option_manual", command], capture_output=True, text=True)
    if listed.returncode != 0:
        sys.exit(f"no options of '{command}': {listed.stderr.strip()}")
    return listed.stdout


def options_of_all(commands, build):
    lists = {options_of(command, build) for command in commands.split(", ")}
    if len(lists) > 1:
        sys.exit(f"the options of {commands} differ: give each its own list in the page")
    return lists.pop()


def written(page, build):
    return LIST.sub(lambda found: found[1] + options_of_all(found[2], build) + found[3], page)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    options = parser.parse_args()
    differs = False
    for path in sorted((ROOT / "docs/man").glob("*.[18]")):
        before = path.read_text()
        after = written(before, options.build)
        if after == before:
            continue
        differs = True
        print(f"{path.relative_to(ROOT)}: " + ("differs from the commands' tables: run tools/manual.py" if options.check else "written"))
        if not options.check:
            path.write_text(after)
    return 1 if options.check and differs else 0


if __name__ == "__main__":
    sys.exit(main())

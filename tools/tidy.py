#!/usr/bin/env python3
"""Checks the house rules that a script can check (CONTRIBUTING.md has all of them).

Prints one line per offence, `file:line: what`; the exit code is then 1.
"""
import re
import sys

import source_tree

CODE = (".h", ".cpp", ".cu", ".cuh", ".py", ".S", ".inc", ".sh")
HEADER_FRONT_PAGE = re.compile(r"^(//|/\*)")
LEFTOVER = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
BANNER = re.compile(r"^\s*(//|#)\s*[-=*#/]{8,}\s*$")
WRONG_WORD = re.compile(r"\b(class|struct|namespace)\s+\w*(Manager|Helper|Utils?|Hijack\w*)\b")
PROBABLY_CODE = re.compile(r"^\s*//\s*((if|for|while) \(.*\) *\{|return\b[^.]*;$|#include|\w+(\.|->)\w+\(.*\);$)")
# A compile definition with an absolute path: ccache then misses in every new clone. paths.h has the paths for tests.
ABSOLUTE_DEFINITION = re.compile(r'\b[A-Z_]+="(\$\{\w*(_DIR|_FOLDER)\}|\$<TARGET_FILE:)')
PATHS_OWNER = "tests/support/CMakeLists.txt"
LONGEST_FILE = 600  # CONTRIBUTING.md: ask why at 400; lists are exempt
LISTS = (".inc",)
FOLDERS_WITH_README = ("agent", "base", "cli", "interposer", "protocol", "simulator", "tests", "tools", "docs")


def line_offences(path, number, line):
    if LEFTOVER.search(line):
        yield "says that something is left to do: do it, or open an issue"
    if BANNER.match(line):
        yield "is a banner: structure comes from files and functions"
    if WRONG_WORD.search(line):
        yield "names a thing by a word that says nothing (Manager, Helper, Util, Hijack)"
    if path.suffix in (".h", ".cpp", ".cu") and PROBABLY_CODE.match(line):
        yield "looks like code in a comment"
    if "\t" in line:
        yield "has a tab"
    if line != line.rstrip():
        yield "ends with a space"


def file_offences(path, lines):
    if path.suffix == ".h":
        if not lines or not HEADER_FRONT_PAGE.match(lines[0]):
            yield 1, "a header starts with its front page: what it is, in a comment"
        if "#pragma once" not in lines:
            yield 1, "a header needs #pragma once"
    if len(lines) > LONGEST_FILE and path.suffix not in LISTS:
        yield len(lines), f"{len(lines)} lines: split it along its parts"


def absolute_definitions():
    for path in source_tree.tracked_files(".txt", ".cmake"):
        if str(path) == PATHS_OWNER:
            continue
        for number, line in enumerate(source_tree.read_lines(path), start=1):
            if ABSOLUTE_DEFINITION.search(line):
                yield f"{path}:{number}: defines an absolute path: use tests/support/paths.h"


def missing_readmes(paths):
    folders = {path.parts[0] for path in paths if len(path.parts) > 1}
    for folder in FOLDERS_WITH_README:
        if folder in folders and not (source_tree.ROOT / folder / "README.md").is_file():
            yield f"{folder}/README.md: missing; a paragraph on what the folder holds"


def offences(path):
    lines = source_tree.read_lines(path)
    for number, offence in file_offences(path, lines):
        yield f"{path}:{number}: {offence}"
    if str(path) == "tools/tidy.py":
        return
    for number, line in enumerate(lines, start=1):
        for offence in line_offences(path, number, line):
            yield f"{path}:{number}: {offence}"


def main():
    paths = source_tree.tracked_files(*CODE)
    found = [offence for path in paths for offence in offences(path)]
    found += missing_readmes(paths)
    found += absolute_definitions()
    for offence in found:
        print(offence)
    print(f"{len(paths)} files, {len(found)} offences against the house rules")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

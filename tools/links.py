#!/usr/bin/env python3
"""Checks the links in the pages: the file exists, and contains the function that a link to code names.

A link to code has a function as its text, like [`Residency::NewRange`](../interposer/execute/residency/residency.cpp). Prints one line
per broken link, `file:line: what`; the exit code is then 1.
"""
import pathlib
import re
import sys

import source_tree

LINK = re.compile(r"\[([^\]]+)\]\(([^)#\s]+)(?:#[^)]*)?\)")
FUNCTION = re.compile(r"`(?:\w+::)*(\w+)`$")
CODE = (".h", ".cpp", ".cu", ".cuh", ".inc")


def offence(page, label, target):
    if re.match(r"[a-z]+:", target):
        return None
    path = (source_tree.ROOT / page.parent / target).resolve()
    if not path.exists():
        return f"{target} is not there"
    function = FUNCTION.match(label)
    if path.suffix in CODE and function and not re.search(rf"\b{function.group(1)}\b", path.read_text(encoding="utf-8")):
        return f"{target} has no {function.group(1)}"
    return None


def main():
    pages = [path for path in source_tree.tracked_files(".md") if not str(path).startswith("CHANGELOG")]
    links = [(page, number, label, target) for page in pages
             for number, line in enumerate(source_tree.read_lines(page), start=1) for label, target in LINK.findall(line)]
    found = [(page, number, what) for page, number, label, target in links if (what := offence(page, label, target))]
    for page, number, what in found:
        print(f"{page}:{number}: {what}")
    print(f"{len(pages)} pages, {len(links)} links, {len(found)} lead nowhere")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

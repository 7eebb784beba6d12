#!/usr/bin/env python3
"""Writes a source with a stand-in for every function that the toolkit's headers declare.

usage: stand_ins.py STATUS OUTPUT PREFIX HEADER...

PREFIX begins the names of the library's functions. STATUS is what a stand-in answers. The build runs this script, so
the exported names are those of the toolkit at hand.
"""
import pathlib
import re
import sys

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
LONG_MACRO = re.compile(r"^#define[^\n]*\\\n(?:[^\n]*\\\n)*", re.MULTILINE)


def functions_in(header, prefix):
    text = LONG_MACRO.sub("", COMMENT.sub("", header.read_text(encoding="utf-8")))
    return re.findall(rf"\b(?:CUDNN|CUBLAS)WINAPI\s+({prefix}\w+)\s*\(", text)


def main():
    status, output, prefix, *headers = sys.argv[1:]
    names = set().union(*(functions_in(pathlib.Path(header), prefix) for header in headers))
    if not names:
        sys.exit(f"no function {prefix}* is declared in {', '.join(headers)}")
    lines = ['#include "simulator/dnn/exports/stand_in.h"', ""]
    lines += [f"SPILLWAY_STAND_IN({name}, {status})" for name in sorted(names)]
    pathlib.Path(output).write_text("\n".join(lines) + "\n", encoding="utf-8")


main()

#!/usr/bin/env python3
"""Checks that interposer/driver/hook_table.inc lists every symbol of the CUDA driver, with its class and treatment.

    tools/symbols.py --include FOLDER [--stub LIBRARY]
    tools/symbols.py --open

FOLDER holds the toolkit's headers; LIBRARY is the toolkit's stub of libcuda. A symbol that either has must have a row,
and a row must be a symbol of one of them. A symbol that is passed through, unless it reports or is harmless, has a
reason; the forms of one function have one class. `--open` lists the symbols that the table marks as not handled yet.
"""
import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import hook_table

SILENT = ("kReports", "kHarmless")
# Makes cuda.h declare each symbol under its exported name (interposer/driver/cuda_abi.h).
EVERY_SYMBOL = ("-D__CUDA_API_VERSION_INTERNAL=1", "-D__CUDA_API_VERSION_INTERNAL_ODR=1")
HEADERS = ("cuda.h", "cudaProfiler.h", "cudaGL.h", "cudaEGL.h", "cudaVDPAU.h")
# Headers of other projects that those include. Empty files suffice, because types do not matter.
FOREIGN_HEADERS = ("GL/gl.h", "EGL/egl.h", "EGL/eglext.h", "vdpau/vdpau.h")
DECLARATION = re.compile(r"\bCUresult\s+(cu[A-Z]\w*)\s*\(")


def symbols_of_stub(library):
    lines = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    return {line.split()[-1] for line in lines.splitlines() if line.split()[-2] == "T"}


def symbols_of_headers(folder, compiler):
    with tempfile.TemporaryDirectory() as empty:
        for header in FOREIGN_HEADERS:
            (Path(empty) / header).parent.mkdir(exist_ok=True)
            (Path(empty) / header).touch()
        source = "".join(f"#include <{header}>\n" for header in HEADERS)
        command = [compiler, "-E", "-P", "-x", "c++", *EVERY_SYMBOL, "-I", empty, "-I", folder, "-"]
        text = subprocess.run(command, input=source, check=True, capture_output=True, text=True).stdout
    return set(DECLARATION.findall(text))


def faults_of_names(rows, sources):
    names = [row.symbol for row in rows]
    yield from (f"{name} stands there twice" for name in sorted({name for name in names if names.count(name) > 1}))
    for source, symbols in sources.items():
        yield from (f"{name} is in {source} and has no row" for name in sorted(symbols - set(names)))
    known = set().union(*sources.values())
    yield from (f"{name} is no symbol of the driver" for name in names if name not in known)


def faults_of_rows(rows):
    classes = {}
    for row in rows:
        classes.setdefault(row.function, {}).setdefault(row.what, row.symbol)
        if row.is_hooked and row.reason:
            yield f"{row.symbol} is hooked, but says why not"
        if not row.is_hooked and not row.reason and row.what not in SILENT:
            yield f"{row.symbol} is {row.what} and passed through without a reason"
    for function, seen in classes.items():
        if len(seen) > 1:
            yield f"{function}: its forms differ in class: " + ", ".join(f"{seen[what]} {what}" for what in seen)


def main():
    options = argparse.ArgumentParser(usage=__doc__)
    options.add_argument("--include")
    options.add_argument("--stub")
    options.add_argument("--compiler", default="c++")
    options.add_argument("--table", type=Path, default=hook_table.FILE)
    options.add_argument("--open", action="store_true")
    chosen = options.parse_args()
    rows = hook_table.read(chosen.table)
    if chosen.open:
        print("\n".join(f"{row.symbol}: {row.reason}" for row in rows if row.reason.startswith("open:")))
        return 0
    sources = {"a header": symbols_of_headers(chosen.include, chosen.compiler)}
    if chosen.stub:
        sources["the stub"] = symbols_of_stub(chosen.stub)
    faults = [*faults_of_names(rows, sources), *faults_of_rows(rows)]
    print("\n".join(f"{chosen.table.name}: {fault}" for fault in faults), file=sys.stderr, end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

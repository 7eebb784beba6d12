#!/usr/bin/env python3
"""Checks what the preload library shows to the processes that it is loaded into, against the tables it is built from.

    tools/exports.py LIBRARY               check a built libspillway.so
    tools/exports.py --write-symbols STUB  rewrite entry/driver_symbols.inc from the toolkit's stub library

Checked: the exported symbols are exactly those of driver_symbols.inc and `dlsym`; every hooked name is among them; the
library asks for no other library than the C library and the loader; its name is libcuda.so.1; it runs no constructor
but the compiler's own frame_dummy; its code needs no relocation.
"""
import re
import subprocess
import sys
from pathlib import Path

ENTRY = Path(__file__).resolve().parent.parent / "interposer" / "entry"
ALLOWED_LIBRARIES = {"libc.so.6", "ld-linux-x86-64.so.2"}
# One pointer: frame_dummy, which gcc's crtbeginS.o puts into every shared library and which does nothing here.
CONSTRUCTOR_BYTES = 8


def rows(file_name, macro):
    text = (ENTRY / file_name).read_text()
    return re.findall(rf"^{macro}\((\w+)\)$", text, re.MULTILINE)


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def exported_symbols(library):
    lines = output_of("nm", "-D", "--defined-only", str(library)).splitlines()
    return {line.split()[-1]: line.split()[-2] for line in lines}


def dynamic_entries(library, tag):
    return re.findall(rf"\({tag}\)\s+(?:.*\[(.*)\]|(\d+) \(bytes\))", output_of("readelf", "-dW", str(library)))


def list_faults(library):
    exported = exported_symbols(library)
    symbols = rows("driver_symbols.inc", "SPILLWAY_SYMBOL")
    hooks = rows("hook_table.inc", "SPILLWAY_HOOK")
    expected = set(symbols) | {"dlsym"}
    yield from (f"{name} is exported and in no table" for name in sorted(set(exported) - expected))
    yield from (f"{name} is not exported" for name in sorted(expected - set(exported)))
    yield from (f"{name} is exported as '{kind}', not as a function" for name, kind in exported.items() if kind != "T")
    yield from (f"{name} is hooked and not in driver_symbols.inc" for name in hooks if name not in symbols)
    yield from (f"{name} is hooked twice" for name in sorted({h for h in hooks if hooks.count(h) > 1}))

    needed = {name for name, _ in dynamic_entries(library, "NEEDED")}
    yield from (f"it needs {name}" for name in sorted(needed - ALLOWED_LIBRARIES))
    names = [name for name, _ in dynamic_entries(library, "SONAME")]
    if names != ["libcuda.so.1"]:
        yield f"its SONAME is {names}, not libcuda.so.1"
    constructor_bytes = sum(int(size) for _, size in dynamic_entries(library, "INIT_ARRAYSZ"))
    if constructor_bytes > CONSTRUCTOR_BYTES:
        yield f"it has {constructor_bytes // 8} constructors, not one: something runs at load time"
    if "TEXTREL" in output_of("readelf", "-dW", str(library)):
        yield "its code needs relocations"


def write_symbols(stub):
    path = ENTRY / "driver_symbols.inc"
    head = "".join(line for line in path.read_text().splitlines(keepends=True) if line.startswith("//"))
    functions = sorted(name for name, kind in exported_symbols(stub).items() if kind == "T")
    path.write_text(head + "\n" + "".join(f"SPILLWAY_SYMBOL({name})\n" for name in functions))
    return len(functions)


def main(arguments):
    if len(arguments) == 2 and arguments[0] == "--write-symbols":
        print(f"wrote {write_symbols(arguments[1])} symbols")
        return 0
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    faults = list(list_faults(arguments[0]))
    for fault in faults:
        print(f"{arguments[0]}: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

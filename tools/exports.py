#!/usr/bin/env python3
"""Checks what the preload library exports, needs and runs at load time, against the tables from which it is built.

    tools/exports.py LIBRARY            check a built libspillway.so
    tools/exports.py --glibc FILE...    only check how old a C library may be on which each file runs

Checked: the exported symbols are exactly those of hook_table.inc, nvml_table.inc and dnn_table.inc, and `dlsym`; the library asks for
no other library than the C library (with its mathematics, by which plans are made, and the libraries that older ones have for loading and
threads) and the loader, and for nothing private in them, nor for more of glibc than MOST_GLIBC; its name is libcuda.so.1; it runs no constructor but the compiler's own frame_dummy; no object of its own
is destroyed at exit, when its threads may still use it; its code needs no relocation.
"""
import platform
import re
import subprocess
import sys
from pathlib import Path

import hook_table

ENTRY = Path(__file__).resolve().parent.parent / "interposer/entry"
ALLOWED_LIBRARIES = {"libc.so.6", "ld-linux-x86-64.so.2", "libm.so.6", "libdl.so.2", "libpthread.so.0"}
# One pointer: frame_dummy. gcc's crtbeginS.o puts it into every shared library; it does nothing here.
CONSTRUCTOR_BYTES = 8
# The newest symbol versions of glibc that a file may need; whatever raises one shuts out older systems. 2.28 is that of RHEL 8.
# base/older_glibc has what Debian 12's compiler needs for it. Another one may bring newer symbols, so only builds there are checked.
CHECKED_GLIBC = "2.36"
MOST_GLIBC = {"libspillway.so": (2, 28), "spillway": (2, 28), "spillway_spank.so": (2, 28)}


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def exported_symbols(library):
    lines = output_of("nm", "-D", "--defined-only", str(library)).splitlines()
    return {line.split()[-1]: line.split()[-2] for line in lines}


def library_symbols():
    """Hooked symbols of libraries other than the driver."""
    rows = (re.findall(r"^SPILLWAY_(?:NVML|DNN)\((\w+)\)", (ENTRY / table).read_text(encoding="utf-8"), re.MULTILINE)
            for table in ("nvml_table.inc", "dnn_table.inc"))
    return set().union(*rows)


def dynamic_entries(library, tag):
    return re.findall(rf"\({tag}\)\s+(?:.*\[(.*)\]|(\d+) \(bytes\))", output_of("readelf", "-dW", str(library)))


# Static objects of functions register with __cxa_atexit; deliberate calls at exit go through atexit.
def functions_with_exit_destructors(library):
    function, found = "", set()
    for line in output_of("objdump", "-dC", "--no-show-raw-insn", str(library)).splitlines():
        if line.endswith(">:"):
            function = line[line.index("<") + 1 : -2]
        elif "<__cxa_atexit@plt>" in line:
            found.add(function)
    return found - {"atexit", "__cxa_atexit@plt"}


def why_not(file):
    """Why the file cannot be checked; empty: it can."""
    if Path(file).name not in MOST_GLIBC:
        return f"{file}: no limit is known for this file, only for {', '.join(MOST_GLIBC)}"
    return "" if Path(file).is_file() else f"{file}: there is no such file"


def glibc_faults(file):
    if platform.libc_ver()[1] != CHECKED_GLIBC:
        return []
    most = MOST_GLIBC[Path(file).name]
    needed = re.findall(r"\*UND\*.*\(?\bGLIBC_(\d+)\.(\d+)[\d.]*\)?\s+(\S+)", output_of("objdump", "-T", str(file)))
    return [f"{symbol} needs glibc {major}.{minor}, newer than {most[0]}.{most[1]}"
            for major, minor, symbol in sorted(needed) if (int(major), int(minor)) > most]


def list_faults(library):
    yield from glibc_faults(library)
    exported = exported_symbols(library)
    expected = {row.symbol for row in hook_table.read()} | library_symbols() | {"dlsym"}
    yield from (f"{name} is exported and in no table" for name in sorted(set(exported) - expected))
    yield from (f"{name} is not exported" for name in sorted(expected - set(exported)))
    yield from (f"{name} is exported as '{kind}', not as a function" for name, kind in exported.items() if kind != "T")

    needed = {name for name, _ in dynamic_entries(library, "NEEDED")}
    yield from (f"it needs {name}" for name in sorted(needed - ALLOWED_LIBRARIES))
    yield from (f"it imports {name}" for name in output_of("nm", "-D", "-u", str(library)).split() if "PRIVATE" in name)
    names = [name for name, _ in dynamic_entries(library, "SONAME")]
    if names != ["libcuda.so.1"]:
        yield f"its SONAME is {names}, not libcuda.so.1"
    constructor_bytes = sum(int(size) for _, size in dynamic_entries(library, "INIT_ARRAYSZ"))
    if constructor_bytes > CONSTRUCTOR_BYTES:
        yield f"it has {constructor_bytes // 8} constructors, not one: something runs at load time"
    yield from (f"{name} has an object that is destroyed at exit" for name in sorted(functions_with_exit_destructors(library)))
    if "TEXTREL" in output_of("readelf", "-dW", str(library)):
        yield "its code needs relocations"


def main(arguments):
    only_glibc = arguments[:1] == ["--glibc"]
    files = arguments[1:] if only_glibc else arguments
    refusals = [reason for reason in map(why_not, files) if reason]
    if refusals:
        print("\n".join(refusals), file=sys.stderr)
        return 2
    if not files or (len(files) > 1 and not only_glibc):
        print(__doc__, file=sys.stderr)
        return 2
    faults = [(file, fault) for file in files for fault in (glibc_faults if only_glibc else list_faults)(file)]
    for file, fault in faults:
        print(f"{file}: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

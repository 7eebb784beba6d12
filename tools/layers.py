#!/usr/bin/env python3
"""Checks that includes go one way: between the folders, and between the modules inside a folder.

Prints one line per offence, `file:line: what`; the exit code is then 1.
"""
import re
import sys

import source_tree

# Folder -> other folders that its files may include.
FOLDERS = {
    "base": set(),
    "protocol": {"base"},
    "scheduler": {"base"},
    "simulator": {"base"},
    "interposer": {"base", "protocol", "scheduler"},
    "agent": {"base", "protocol", "scheduler"},
    "cli": {"base", "protocol", "scheduler", "simulator"},
    "deploy": {"base", "protocol"},
}
# Tests may include everything. A workload must run where only CUDA is installed, so it includes nothing of ours.
WORKLOADS = ("tests/workloads/", "tests/gpu/workloads/")

# Modules in the order in which data passes: a module may include itself and the modules after it.
MODULES = {
    "interposer": ["entry", "runtime", "share", "planning", "execute", "record", "dnn", "ledger", "lease", "driver", "kernels", "config"],
    "agent": ["main", "loop", "http", "report", "device", "shares", "planning", "node", "config", "identity", "turns", "arbiter", "service", "planstore", "pool", "link"],
    "simulator": ["fft", "rand", "solver", "sparse", "dnn", "runtime", "nvml", "driver", "plugins", "kernels"],
    "scheduler": ["networks", "plan", "learn", "trace"],
}
# Likewise the folders inside a module. Of the files beside these folders, those in the list (node.h, node.cpp: node) have
# their own place, and so have all others where the list has a BESIDE. Else they count as the last folder.
BESIDE = "(beside)"
INNER_MODULES = {
    "interposer/execute": [BESIDE, "residency", "state"],
    "agent/node": ["node", "messages", "sessions", "holdings", "table"],
    "simulator/dnn": ["graph", "cublaslt", "cublas", "cudnn", "exports", "common"],
    "simulator/driver": ["api", "calls", "device", "modules", "engine", "memory", "machine"],
}
# Only these may include cuda.h and cudaTypedefs.h; other files include these instead.
CUDA_HEADER_OWNERS = {"interposer": "interposer/driver/cuda_abi.h"}

INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]')


def folder_of(path):
    return path.parts[0] if len(path.parts) > 1 else ""


def module_of(path):
    """The module's folder; of a file beside the modules its name without the ending, which has no place in the order."""
    return path.parts[1] if len(path.parts) > 2 else path.stem


def folder_offence(path, included):
    own, other = folder_of(path), folder_of(included)
    if str(path).startswith(WORKLOADS) and other in FOLDERS:
        return f"a workload knows nothing of Spillway, but includes {included}"
    if own not in FOLDERS or other not in FOLDERS or own == other:
        return None
    if other in FOLDERS[own]:
        return None
    return f"{own} may not include {other} ({included})"


def module_offence(path, included):
    folder = folder_of(path)
    order = MODULES.get(folder)
    if order is None or folder_of(included) != folder:
        return None
    own, other = module_of(path), module_of(included)
    for module in (own, other):
        if module and module not in order:
            return f"module {folder}/{module} has no place in the order of tools/layers.py"
    if not own or not other or order.index(own) <= order.index(other):
        return None
    return f"{folder}/{own} may not include {folder}/{other} ({included}): calls go forward only"


def inner_folder_of(path, order):
    if len(path.parts) > 3:
        return path.parts[2]
    if path.stem in order and BESIDE not in order:
        return path.stem
    return BESIDE if BESIDE in order else order[-1]


def inner_offence(path, included):
    module = "/".join(path.parts[:2])
    order = INNER_MODULES.get(module)
    if order is None or "/".join(included.parts[:2]) != module:
        return None
    own, other = inner_folder_of(path, order), inner_folder_of(included, order)
    for folder in (own, other):
        if folder not in order:
            return f"folder {module}/{folder} has no place in the order of tools/layers.py"
    if order.index(own) <= order.index(other):
        return None
    return f"{module}/{own} may not include {module}/{other} ({included}): calls go forward only"


def cuda_offence(path, included):
    owner = CUDA_HEADER_OWNERS.get(folder_of(path))
    if owner is None or str(path) == owner or str(included) not in ("cuda.h", "cudaTypedefs.h"):
        return None
    return f"only {owner} includes {included}"


def offences(path):
    for number, line in enumerate(source_tree.read_lines(path), start=1):
        match = INCLUDE.match(line)
        if match is None:
            continue
        included = type(path)(match.group(1))
        for check in (folder_offence, module_offence, inner_offence, cuda_offence):
            offence = check(path, included)
            if offence is not None:
                yield f"{path}:{number}: {offence}"


def main():
    paths = source_tree.tracked_files(".h", ".cpp", ".cu", ".cuh", ".inc", ".c")
    found = [offence for path in paths for offence in offences(path)]
    for offence in found:
        print(offence)
    print(f"{len(paths)} files, {len(found)} includes that go the wrong way")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

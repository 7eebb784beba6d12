#!/usr/bin/env python3
"""Checks that every case that users of similar GPU layers reported has a test here.

The cases are numbered T1 to T26. A test has its number in its name or in the table below. Prints a line per case without a
test; the exit code is then 1.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
ENTRY_POINTS = "tests/integration/entry_points/peers_test.cpp"
PROCESSES = "tests/integration/processes/processes_test.cpp"
GPU = "tests/gpu/suite/peers.py"

# Number: the reported case; the test's file or folder; a pattern to find there.
CASES = {
    1: ("each entry point by the name and version asked for", ENTRY_POINTS, r"PeersT1,"),
    2: ("odd requests for entry points", ENTRY_POINTS, r"PeersT2,"),
    3: ("older and younger drivers", ENTRY_POINTS, r"PeersT3,"),
    4: ("programs without CUDA", PROCESSES, r"PeersT4_"),
    5: ("RTLD_NEXT through several libraries and threads", ENTRY_POINTS, r"PeersT5,"),
    6: ("another library that exports dlsym", ENTRY_POINTS, r"PeersT6,"),
    7: ("what is exported and needed", "interposer/CMakeLists.txt", r"NAME interposer\.exports"),
    8: ("queries with null results, before cuInit, without a context", "tests/integration/sharing", r"T8"),
    9: ("a random walk through the ledger", PROCESSES, r"PeersT9,"),
    10: ("more in use than the limit after it shrank", "tests/integration/sharing", r"T10"),
    11: ("cuMemCreate elsewhere than on the current device", "tests/integration/sharing", r"T11"),
    12: ("the orders of map, release and unmap", "tests/integration/sharing", r"T12"),
    13: ("primary contexts reset, contexts destroyed with memory in them", PROCESSES, r"PeersT13,"),
    14: ("fork storms", PROCESSES, r"PeersT14,"),
    16: ("calls at exit, _exit, detached threads, a driver that has shut down", PROCESSES, r"PeersT16,"),
    17: ("an edited environment", PROCESSES, r"PeersT17_"),
    18: ("captures that allocate, free and ask", "tests/regressions/graphs_test.cpp", r"PeersT18"),
    20: ("static and shared runtimes, per-thread default streams", "tests/workloads/samples/samples_test.py", r"T20"),
    **{number: (what, GPU, rf'"T{number}"') for number, what in (
        (21, "PyTorch beyond its budget"), (22, "PyTorch's allocators"), (23, "NCCL, captured too"),
        (24, "cuDNN near the budget"), (25, "NVML's figure and ours"), (26, "a plug-in loaded with RTLD_DEEPBIND"))},
}
# These concern the agent's protocol and metrics.
AGENTS = {15, 19}


def texts(path):
    files = [path] if path.is_file() else sorted(path.rglob("*.cpp")) if path.is_dir() else []
    return "".join(file.read_text(encoding="utf-8") for file in files)


def main():
    missing = [f"T{number}: {what}: not in {where}" for number, (what, where, pattern) in sorted(CASES.items())
               if not re.search(pattern, texts(ROOT / where))]
    missing += [f"T{number}: no place" for number in set(range(1, 27)) - set(CASES) - AGENTS]
    for line in missing:
        print(line)
    print(f"{len(CASES)} reported cases, {len(missing)} without a test; {len(AGENTS)} concern the agent")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())

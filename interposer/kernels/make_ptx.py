#!/usr/bin/env python3
"""Compiles a kernel of Spillway's to PTX that old drivers load, and says whether the checked-in text is up to date.

  make_ptx.py NVCC FOLDER SOURCE OUTPUT           FOLDER is the tree's root
  make_ptx.py --check FOLDER SOURCE CHECKED [BUILT]

It is compiled for the oldest device that the toolkit has. Then the version of the PTX language is lowered to CUDA 12.4's,
because a driver refuses text of a later one, and the target to the oldest device of such drivers; ptxas accepts the result
only if no later instruction is in it. The first line names the compiler
and a hash of the source, its header and the target, without comments and spaces. The check compares that hash; where BUILT is
by the same compiler, it compares the instructions, too.
"""
import hashlib
import pathlib
import re
import subprocess
import sys
import tempfile

TARGET = "compute_75"
LANGUAGE_VERSION = "8.4"
OLDEST_DEVICE = "sm_52"


def sources_of(folder, source):
    return [pathlib.Path(source), pathlib.Path(folder) / "base/fingerprint_kernel.h"]


def source_hash(folder, source):
    text = TARGET + LANGUAGE_VERSION + OLDEST_DEVICE
    for path in sources_of(folder, source):
        text += re.sub(r"//.*|\s+", "", path.read_text())
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def release_of(nvcc):
    shown = subprocess.run([nvcc, "--version"], check=True, capture_output=True, text=True).stdout
    return re.search(r"V([\d.]+)", shown)[1]


def compiled(nvcc, folder, source):
    with tempfile.TemporaryDirectory() as scratch:
        output = pathlib.Path(scratch) / "kernel.ptx"
        command = [nvcc, "-ptx", f"-arch={TARGET}", "-std=c++20", "-I", folder, source, "-o", output]
        subprocess.run(command, check=True)
        return output.read_text()


def lowered(text):
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("//")]
    text = re.sub(r"(?m)^\.version .*$", f".version {LANGUAGE_VERSION}", "\n".join(lines) + "\n")
    return re.sub(r"(?m)^\.target .*$", f".target {OLDEST_DEVICE}", text)


def make(nvcc, folder, source, output):
    head = f"// {pathlib.Path(source).name}, source {source_hash(folder, source)}, by nvcc {release_of(nvcc)}\n"
    pathlib.Path(output).write_text(head + lowered(compiled(nvcc, folder, source)))


def check(folder, source, checked, built=None):
    text = pathlib.Path(checked).read_text()
    head = text.partition("\n")[0]
    advice = f"make it again: {sys.argv[0]} nvcc {folder} {source} {checked}"
    if f"source {source_hash(folder, source)}," not in head:
        sys.exit(f"{checked} is of another source; {advice}")
    if built is not None:
        made = pathlib.Path(built).read_text()
        if made.partition("\n")[0] == head and made != text:
            sys.exit(f"{checked} has other instructions than {built}; {advice}")


def main():
    if sys.argv[1] == "--check":
        check(*sys.argv[2:])
    else:
        make(*sys.argv[1:])


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Compiles every C++ file of ours with clang, as gcc does but without objects: for its warnings and its lock analysis.

usage: clang_syntax.py BUILD_DIR [--jobs N] [--alone] [--tidy] [--only TEXT] [--without-tests]

Takes the commands from BUILD_DIR/compile_commands.json and adds -Wthread-safety; all warnings are errors. With --tidy it
runs clang-tidy with .clang-tidy instead. Several sources are compiled in one call where gcc does so: that takes
a third of the time. With --alone, --tidy or --only each is compiled alone: it must then include what it needs, and clang
reports its unused names.
"""
import argparse
import concurrent.futures
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import source_tree

WARNINGS = ["-Wall", "-Wextra", "-Werror", "-Wthread-safety"]
# Flags of gcc alone, and flags for output files.
DROPPED = {"-c", "-MD", "-MMD", "-fno-gnu-unique", "-static-libstdc++", "-static-libgcc"}
DROPPED_WITH_VALUE = {"-o", "-MF", "-MT", "-MQ"}
DROPPED_PREFIXES = ("-fno-tree-", "-fno-semantic-interposition", "--param", "-fconcepts")
CCACHE = ["ccache"] if shutil.which("ccache") else []


# The unity files of tools/cmake/SpillwayUnity.cmake, and their lines.
UNITY_FILE = re.compile(r"/unity/[\w-]+_\d+\.cxx$")
UNITY_LINE = re.compile(r'^#include "(.+)"$', re.MULTILINE)


def sources_of(unity_file):
    return [str(source_tree.ROOT / name) for name in UNITY_LINE.findall(pathlib.Path(unity_file).read_text(encoding="utf-8"))]


def entries_of_few_calls(entries):
    """Without the sources that some unity file has: other targets may compile them alone."""
    united = {source for entry in entries if UNITY_FILE.search(entry["file"]) for source in sources_of(entry["file"])}
    return [entry for entry in entries if entry["file"] not in united]


def entries_of_sources(entries):
    """Splits a unity file into its sources, each with the flags of the unity file."""
    for entry in entries:
        if not UNITY_FILE.search(entry["file"]):
            yield entry
            continue
        flags = [word for word in words_of(entry) if word != entry["file"]]
        for source in sources_of(entry["file"]):
            yield {"directory": entry["directory"], "file": source, "arguments": flags}


def is_ours(entry, build_dir):
    path = pathlib.Path(entry["file"]).resolve()
    if path.suffix not in (".cpp", ".cc", ".cxx"):
        return False
    if path.is_relative_to(build_dir):
        return bool(UNITY_FILE.search(entry["file"]))
    return path.is_relative_to(source_tree.ROOT)


def is_test(entry, build_dir):
    path = pathlib.Path(entry["file"])
    return any(path.is_relative_to(root / "tests") for root in (source_tree.ROOT, build_dir))


def words_of(entry):
    return entry.get("arguments") or shlex.split(entry["command"])


def kept_flags(entry):
    words = words_of(entry)
    while words and not words[0].startswith("-"):
        words = words[1:]  # ccache and the compiler
    flags, skip = [], False
    for word in words:
        if skip:
            skip = False
        elif word in DROPPED_WITH_VALUE:
            skip = True
        elif word not in DROPPED and not word.startswith(DROPPED_PREFIXES) and word != entry["file"]:
            flags.append(word)
    return flags


def command_for(entry, tidy, depfile):
    """The depfile tells ccache which headers the file includes."""
    if tidy:
        return ["clang-tidy", "--quiet", "--warnings-as-errors=*", entry["file"], "--", *kept_flags(entry), *WARNINGS]
    return [*CCACHE, "clang++", "-fsyntax-only", "-MD", "-MF", depfile, *kept_flags(entry), *WARNINGS, entry["file"]]


def check(entry, tidy):
    with tempfile.NamedTemporaryFile(suffix=".d") as depfile:
        command = command_for(entry, tidy, depfile.name)
        result = subprocess.run(command, cwd=entry["directory"], capture_output=True, text=True)
    return entry["file"], result.returncode, result.stdout + (result.stderr if result.returncode else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build_dir", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--alone", action="store_true", help="each source in a call of its own")
    parser.add_argument("--tidy", action="store_true", help="clang-tidy instead of clang")
    parser.add_argument("--only", default="", help="only files whose path contains this")
    parser.add_argument("--without-tests", action="store_true", help="leave out what lies under tests/")
    options = parser.parse_args()
    build_dir = options.build_dir.resolve()
    entries = json.loads((build_dir / "compile_commands.json").read_text(encoding="utf-8"))
    is_alone = options.alone or options.tidy or options.only
    entries = list(entries_of_sources(entries)) if is_alone else entries_of_few_calls(entries)
    if options.without_tests:
        entries = [entry for entry in entries if not is_test(entry, build_dir)]
    # One pass per file, though some belong to several targets: the warnings are the same.
    by_file = {entry["file"]: entry for entry in entries if is_ours(entry, build_dir) and options.only in entry["file"]}
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for file, exit_code, output in pool.map(lambda entry: check(entry, options.tidy), by_file.values()):
            if exit_code:
                failed += 1
                print(f"{file}:\n{output}", flush=True)
    print(f"{len(by_file)} files, {failed} failed")
    return 1 if failed or not by_file else 0


if __name__ == "__main__":
    sys.exit(main())

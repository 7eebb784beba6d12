#!/usr/bin/env python3
"""The preload library, compiled again in another folder and without ccache, has the same bytes.

    usage: reproducible_test.py --build BUILD
"""
import argparse
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
LIBRARY = "lib/libspillway.so"


def copy_tree(target):
    """The tree's files with other times."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"], capture_output=True, check=True)
    for name in filter(None, os.fsdecode(listed.stdout).split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target / name)
            shutil.copymode(ROOT / name, target / name)


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True, type=pathlib.Path)
    build = parser.parse_args().build.resolve()
    with tempfile.TemporaryDirectory(prefix="spillway-built-again-") as folder:
        copy_tree(pathlib.Path(folder))
        again = pathlib.Path(folder) / build.name
        environment = dict(os.environ, CCACHE_DISABLE="1")
        subprocess.run(["cmake", "-S", folder, "-B", again, "-G", "Ninja", "-DSPILLWAY_SIMULATOR=OFF", "-DSPILLWAY_TESTS=OFF"],
                       check=True, env=environment, stdout=subprocess.DEVNULL)
        subprocess.run(["ninja", "-C", again, LIBRARY], check=True, env=environment, stdout=subprocess.DEVNULL)
        digests = digest(build / LIBRARY), digest(again / LIBRARY)
    print(*digests, sep="\n")
    return 0 if digests[0] == digests[1] else 1


if __name__ == "__main__":
    sys.exit(main())

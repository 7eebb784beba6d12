#!/usr/bin/env python3
"""The quick starts, executed line by line as a reader would type them.

    usage: quick_start_test.py --build BUILD [TEST...]

Lines `    $ command` of a page are commands, with `    > ` before their further lines. The indented lines behind are what the command
prints, `...` stands for what differs. All commands of a page run in one shell, in a folder with links to this tree's entries.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "tests/support"))
from ports import free_port  # noqa: E402

BUILD = None
END = "the end of one command"
PREAMBLE = "set -e -o pipefail\ntrap 'kill $(jobs -p) 2> /dev/null || true' EXIT\n"
PROMPT, MORE = "    $ ", "    > "


def steps_of(page):
    """[command, [line that it prints, ...]] of the page, in order."""
    steps, is_open = [], False
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith(PROMPT):
            steps.append([line[len(PROMPT):], []])
            is_open = True
        elif line.startswith(MORE):
            steps[-1][0] += "\n" + line[len(MORE):]
        elif line.startswith("    ") and is_open:
            steps[-1][1].append(line.strip())
        else:
            is_open = False  # a text, or a block for the reader's own files
    return steps


def matches(stated, printed):
    pattern = ".*".join(re.escape(part) for part in stated.split("..."))
    return re.fullmatch(pattern, " ".join(printed.split())) is not None


def unprinted(stated_lines, printed_lines):
    """The first stated line that does not follow in what was printed; None: all do, in this order."""
    printed = iter(printed_lines)
    for stated in stated_lines:
        if not any(matches(" ".join(stated.split()), line) for line in printed):
            return stated
    return None


class QuickStartTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="spillway-start.")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for entry in ROOT.iterdir():
            if entry.name not in (".git", "build"):
                (self.folder / entry.name).symlink_to(entry)
        (self.folder / "build").symlink_to(BUILD)

    def run_page(self, name):
        steps = steps_of(ROOT / "docs" / name)
        self.assertGreater(len(steps), 4, "the page has its commands")
        lines = "".join(f"{command}\nprintf '\\n{END}\\n'\n" for command, _ in steps)
        script = PREAMBLE + lines.replace("127.0.0.1:9477", f"127.0.0.1:{free_port()}")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SPILLWAY_")}
        done = subprocess.run(["bash", "-c", script], cwd=self.folder, text=True, timeout=250, check=False, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**environment, "XDG_STATE_HOME": str(self.folder / "state")})
        outputs = done.stdout.split(f"\n{END}\n")
        if done.returncode != 0:
            self.fail(f"`{steps[len(outputs) - 1][0]}` ends so: {outputs[-1]}")
        for (command, stated), output in zip(steps, outputs):
            self.assertIsNone(unprinted(stated, output.splitlines()), f"`{command}` prints: {output}")

    def test_training(self):
        self.run_page("start_training.md")

    def test_operating(self):
        self.run_page("start_operating.md")

    def test_contributing(self):
        self.run_page("start_contributing.md")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, type=lambda path: pathlib.Path(path).resolve())
    arguments, rest = parser.parse_known_args()
    BUILD = arguments.build
    unittest.main(argv=[sys.argv[0], *rest])

#!/usr/bin/env python3
"""The manual pages describe exactly the options and settings of the commands.

    usage: manual_test.py --build BUILD [unittest arguments]
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import skips  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGES = ROOT / "docs/man"
TERMS = {"job", "uid", "uuid", "memory", "name", "uids"}  # in lists, which `--show` of the defaults does not print
BUILD = None


def said(*command):
    return subprocess.run([BUILD / "bin" / command[0], *command[1:]], capture_output=True, text=True).stdout


def page(name):
    return (PAGES / name).read_text()


def commands():
    listed = subprocess.run([BUILD / "bin/spillway", "nonsense"], capture_output=True, text=True).stderr
    return re.split(r", | and ", re.search(r"there are (.*)", listed)[1].strip())


def options_described(text):
    """Terms that are described, not only mentioned."""
    described = re.findall(r"(?m)^\.It (.*)$", text)
    return {option for line in described for option in re.findall(r"Fl Fl ([a-z][a-z-]*)", line)}


def help_of(command):
    verbs = ("print", "convert", "trim") if command == "trace" else ()
    texts = [said("spillway", command, "--help"), *(said("spillway", command, verb, "--help") for verb in verbs)]
    return "\n".join(re.split(r"\nExamples?\n", text)[0] for text in texts)


def options_of_help(text):
    lines = [line.split("  ")[0] if line.startswith("-") else line for line in map(str.strip, text.splitlines())
             if line.startswith(("-", "spillway "))]
    return {option for line in lines for option in re.findall(r"--([a-z][a-z-]+)", line.split(" -- ")[0])}


class PagesTest(unittest.TestCase):
    def test_lists_of_options_are_those_of_the_commands_tables(self):
        checked = subprocess.run([ROOT / "tools/manual.py", "--check", "--build", BUILD], capture_output=True, text=True)
        self.assertEqual((checked.returncode, checked.stdout + checked.stderr), (0, ""))

    def test_every_command_with_options_has_a_list_of_those_that_its_help_shows(self):
        pages = page("spillway-run.1") + page("spillway.1")
        helped = {command: options_of_help(help_of(command)) for command in commands()}
        self.assertGreater(len(helped["run"]), 10)
        for command in filter(helped.get, helped):
            with self.subTest(command=command):
                listed = re.search(rf'(?s)\.\\" Options of [a-z, ]*\b{command}\b.*?End of the options', pages)
                self.assertIsNotNone(listed)
                self.assertEqual(options_described(listed[0]), helped[command])

    def test_spillway_names_every_command(self):
        words = set(re.findall(r"[a-z]+", " ".join(re.findall(r"(?m)^\.It Cm (.*)$", page("spillway.1")))))
        self.assertEqual(set(commands()) - words, set())

    def test_spillwayd(self):
        self.assertEqual(options_described(page("spillwayd.8")), options_of_help(said("spillwayd", "--help")) | {"help"})

    def test_spillway_kubernetes(self):
        if not (BUILD / "bin/spillway-kubernetes").exists():
            self.skipTest("spillway-kubernetes is not built")
        self.assertEqual(options_described(page("spillway-kubernetes.8")), options_of_help(said("spillway-kubernetes", "--help")))

    def test_settings_and_their_defaults(self):
        shown = said("spillwayd", "--show", "--config", "/dev/null").split("\n[defaults]")[0]
        settings = {(key, value.strip('"')) for key, value in re.findall(r"(?m)^(\w+) = (.*?)  #", shown)}
        self.assertGreater(len(settings), 15)
        written = re.findall(r"(?m)^\.It Ic (\w+) No = Li (.*)$", page("spillway.toml.5"))
        self.assertEqual({(key, value.strip('"')) for key, value in written}, settings)

    def test_terms(self):
        source = (ROOT / "agent/config/config_fields.cpp").read_text()
        terms = set(re.findall(r'\{"(\w+)", K::\w+, [^{}]*?&[TO]::', source))
        self.assertGreater(len(terms), 6)
        self.assertEqual(set(re.findall(r"(?m)^\.It Ic (\w+)$", page("spillway.toml.5"))) - TERMS, terms)

    @unittest.skipUnless(shutil.which("mandoc"), "mandoc is not installed")
    def test_mandoc_finds_nothing_wrong(self):
        for path in sorted(PAGES.glob("*.[158]")):
            checked = subprocess.run(["mandoc", "-Tlint", "-W", "warning", path], capture_output=True, text=True)
            self.assertEqual(checked.stdout, "")


def main():
    global BUILD
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True, type=pathlib.Path)
    options, rest = parser.parse_known_args()
    BUILD = options.build.resolve()
    skips.main(rest)


if __name__ == "__main__":
    main()

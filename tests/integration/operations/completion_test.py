#!/usr/bin/env python3
"""The completions of bash, zsh and fish: every command and option of the help, queried from the
real shells.

    usage: completion_test.py --build BUILD [unittest arguments]
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import skips  # noqa: E402

BUILD = FOLDER = None
ASK_BASH = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
compopt() { :; }
"_$1"
printf '%s\\n' "${COMPREPLY[@]}"
"""
ASK_FISH = 'source $argv[1]; complete -C "$argv[2]"'
# Runs without compinit: the arguments of _arguments and _describe are the completions.
ASK_ZSH = """
_arguments() { print -rl -- "$@"; state=$wanted; return 1 }
_describe() { print -rl -- "${(@P)2}" }
compdef() { :; }
source $1
wanted=$2 service=$3 words=("${@:4}") _spillway
"""

# Types a line and a tab into a terminal of its own; shows the command instead of running it.
TYPE_INTO_ZSH = """
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z "PS1=; autoload -Uz compinit; compinit -u -D; source $1; spillway() { echo \\<\$*\\>; }; echo REA''DY"
zpty -r -m z line '*READY*'
zpty -w -n z "$2"$'\\t'
zpty -w -n z $'\\n'
zpty -r -m z line '*<*>*'
print -r -- $line
zpty -d z
"""


def run(*command, **options):
    environment = dict(os.environ, PATH=f"{BUILD / 'bin'}:{os.environ['PATH']}")
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, **options)


def spillway(*arguments):
    return run("spillway", *arguments)


def commands():
    """The commands that the error for an unknown command lists."""
    listed = re.search(r"why: there are (.*)", spillway("nonsense").stderr)[1]
    return re.split(r", | and ", listed.strip())


def help_of(command):
    texts = [spillway(command, "--help").stdout]
    if command == "trace":
        texts += [spillway("trace", verb, "--help").stdout for verb in ("print", "convert", "trim")]
    return "\n".join(texts)


def options_in(command):
    """Options that a help describes: first on their line, or in the usage's brackets."""
    own = [line for line in help_of(command).splitlines() if re.match(r"\s+(-\w, *)?--\w", line) or re.match(rf"\s+spillway {command}\b", line)]
    listed = [re.split(r"(?<=\S)  +|\[=", line.strip())[0] if line.strip().startswith("-") else line for line in own]
    return {name for line in listed for name in re.findall(r"--[a-z][a-z-]+", line.split(" -- ")[0])}


def daemon_options():
    """Options that the help of spillwayd lists, with their letters."""
    listed = re.findall(r"(?m)^ +(?:(-\w), )?(--[a-z-]+)", run("spillwayd", "--help").stdout.split("\n\n", 2)[2])
    return {name for names in listed for name in names if name}


def script(shell):
    path = FOLDER / f"spillway.{shell}"
    if not path.exists():
        path.write_text(spillway("completion", shell).stdout)
    return str(path)


class ListTest(unittest.TestCase):
    def test_help_is_parsed_correctly(self):
        self.assertIn("--no-framework-env", options_in("run"))
        self.assertIn("--guaranteed", options_in("budget"))
        self.assertIn("--until", options_in("trace"))
        self.assertGreater(len(commands()), 12)

    def test_another_shell_is_refused(self):
        self.assertEqual(spillway("completion", "tcsh").returncode, 2)


class Shell:
    def test_every_command_is_offered(self):
        self.assertEqual(set(commands()) - self.offered("spillway", ""), set())

    def test_exactly_the_options_of_the_help_are_offered(self):
        for command in commands():
            with self.subTest(command=command):
                words = {re.split("[=+]", word)[0] for word in self.offered("spillway", command, "--")}
                offered = {word for word in words if word.startswith("--")}
                self.assertEqual(offered - {"--help"}, options_in(command) - {"--help"})

    def test_exactly_the_options_of_spillwayd_are_offered(self):
        self.assertGreater(len(daemon_options()), 8)
        offered = {re.split("[=+]", word)[0] for word in self.offered("spillwayd", "-")}
        self.assertEqual({word for word in offered if re.match("--?[a-z]", word)}, daemon_options())


class BashTest(Shell, unittest.TestCase):
    def offered(self, *words):
        return set(run("bash", "--norc", "-c", ASK_BASH, "bash", script("bash"), *words).stdout.split())

    def test_values_verbs_and_programs(self):
        self.assertEqual(self.offered("spillway", "run", "--park", ""), {"auto", "host", "off"})
        self.assertEqual(self.offered("spillway", "run", "--simulate", "=", "h"), {"h100", "h200"})
        self.assertEqual(self.offered("spillway", "config", ""), {"check", "show", "diff", "reload", "log"})
        self.assertIn("bash", self.offered("spillway", "run", "--budget", "8GiB", "--", "bas"))
        self.assertIn("bash", self.offered("spillway", "run", "-q", "bas"))
        self.assertNotIn("--budget", self.offered("spillway", "run", "--", "env", "--"))
        self.assertIn("/etc/passwd", self.offered("spillwayd", "--config", "/etc/passw"))
        self.assertIn("/etc/passwd", self.offered("spillwayd", "--config", "=", "/etc/passw"))

    def test_script_is_clean(self):
        if not shutil.which("shellcheck"):
            self.skipTest("shellcheck is not installed")
        # Word splitting is intended: it turns compgen's answers into a list.
        checked = run("shellcheck", "-s", "bash", "-e", "SC2207", script("bash"))
        self.assertEqual(checked.stdout, "")


@unittest.skipUnless(shutil.which("fish"), "fish is not installed")
class FishTest(Shell, unittest.TestCase):
    def offered(self, *words):
        answer = run("fish", "--no-config", "-c", ASK_FISH, script("fish"), " ".join(words)).stdout
        return {line.split("\t")[0] for line in answer.splitlines()}

    def test_values_verbs_and_programs(self):
        self.assertEqual(self.offered("spillway", "run", "--park", ""), {"auto", "host", "off"})
        self.assertEqual(self.offered("spillway", "config", ""), {"check", "show", "diff", "reload", "log"})
        self.assertIn("bash", self.offered("spillway", "run", "--budget", "8GiB", "--", "bas"))
        self.assertNotIn("--budget", self.offered("spillway", "run", "--", "env", "--"))


@unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
class ZshTest(Shell, unittest.TestCase):
    def offered(self, *words):
        state = "command" if len(words) == 2 else "word"
        told = run("zsh", "-f", "-c", ASK_ZSH, "zsh", script("zsh"), state, *words).stdout
        return {re.split(r"[:\[]", line)[0] for line in told.splitlines()}

    def test_values_verbs_and_programs(self):
        for typed, completed in (("spillway bud", "<budget>"), ("spillway run --park a", "<run --park auto>"),
                                 ("spillway config rel", "<config reload>"),
                                 ("spillway run --simulate=h2", "<run --simulate=h200>"),
                                 ("spillway run --budget 8GiB -- basena", "<run --budget 8GiB -- basename>")):
            self.assertIn(completed, run("zsh", "-f", "-c", TYPE_INTO_ZSH, "zsh", script("zsh"), typed).stdout, typed)

    def test_script_is_zsh(self):
        self.assertEqual(run("zsh", "-f", "-n", script("zsh")).stderr, "")


def main():
    global BUILD, FOLDER
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True, type=pathlib.Path)
    options, rest = parser.parse_known_args()
    BUILD = options.build.resolve()
    with tempfile.TemporaryDirectory(prefix=f"spillway-completion-{os.getpid()}-") as folder:
        FOLDER = pathlib.Path(folder)
        skips.main(rest)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""The command as scripts use it with a real spillwayd: JSON with its schema from every command
with --json, and the documented exit codes.

    usage: script_test.py --build BUILD [unittest arguments]
"""
import json
import os
import re
import subprocess

import agent_test
from agent_test import ADMISSION, GIB, Session


class ScriptTest(agent_test.AgentFixture):
    def setUp(self):
        super().setUp()
        self.start()
        session = Session(self.path)
        self.addCleanup(session.socket.close)
        session.hello()
        session.register(4 * GIB)
        session.next(ADMISSION)
        session.grant()
        self.job = f"local-{os.getpid()}"

    def told(self, *arguments, code=0):
        """Its output with --json, which must name its schema and end with this exit code."""
        done = self.spillway(*arguments, "--json")
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        answer = json.loads(done.stdout)
        self.assertEqual(answer["schema"], 1, arguments)
        return answer

    def device_of(self):
        return self.told("job", self.job)["devices"][0]

    def test_views_have_their_schema(self):
        self.assertEqual(self.told("status")["devices"][0]["memory_bytes"], 16 * GIB)
        self.assertEqual([job["job"] for job in self.told("jobs")["jobs"]], [self.job])
        self.assertEqual(self.told("job", self.job)["job"], self.job)

    def test_a_budget_is_set_and_a_dry_run_sets_nothing(self):
        change = ("budget", "set", self.job, "3GiB", "--host", "2GiB", "--link", "50%", "--weight", "3")
        before = self.device_of()

        dry = self.told(*change, "--dry-run")
        self.assertEqual((dry["done"], dry["would_be_done"]), (False, True))
        self.assertEqual(self.device_of()["limit_bytes"], before["limit_bytes"])
        self.assertEqual(self.told(*change)["done"], True)

        after = self.device_of()
        self.assertEqual((after["limit_bytes"], after["weight"]), (3 * GIB, 3))
        self.assertLessEqual(after["host_budget_bytes"], 2 * GIB)

    def test_draining_is_reported(self):
        for verb, drains in (("drain", True), ("undrain", False)):
            self.assertEqual(self.told(verb)["done"], True)
            self.assertEqual(self.told("status")["draining"], drains)

    def test_refusals_give_their_reason(self):
        for arguments in (("job", "local-1"), ("budget", "set", "local-1", "1GiB"), ("budget", "set", self.job, "--guaranteed", "99TiB")):
            answer = self.told(*arguments, code=3)
            self.assertEqual((answer["done"], answer["exit_code"]), (False, 3))
            self.assertTrue(answer["why"])

    def test_a_wrong_command_line_and_a_missing_agent_have_their_exit_codes(self):
        self.assertEqual(self.told("budget", "set", self.job, code=2)["exit_code"], 2)
        self.assertEqual(self.told("job", code=2)["exit_code"], 2)
        self.stop()
        self.assertEqual(self.told("status", code=4)["exit_code"], 4)

    def test_the_configuration_is_reported(self):
        file = ("--config", str(self.folder / "spillway.toml"))

        self.assertEqual(self.told("config", "check", *file)["errors"], [])
        shown = self.told("config", "show", *file)["configuration"]
        self.assertEqual(shown["devices"]["find"], False)
        self.assertEqual(shown["device"][0]["memory"], "16GiB")
        self.assertIn("[devices] find: true -> false", self.told("config", "diff", *file)["differences"])
        self.told("config", "reload")
        self.told("config", "log", "debug")

        self.configure("[agent]\n")
        wrong = self.told("config", "check", *file, code=1)
        self.assertEqual(wrong["valid"], False)
        self.assertRegex(wrong["errors"][0], r"spillway\.toml:\d+")
        self.assertEqual(self.told("config", "reload", code=3)["done"], False)

    def test_help_and_manual_document_the_exit_codes(self):
        for subcommand in ("status", "budget", "drain", "config", "top"):
            page = subprocess.run([agent_test.BUILD / "bin/spillway", "help", subcommand], capture_output=True, text=True).stdout
            codes = re.search(r"Exit codes: (.*)", page)
            self.assertTrue(codes, page)
            self.assertIn("4 there is no agent", codes[1])


if __name__ == "__main__":
    agent_test.main()

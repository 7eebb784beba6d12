#!/usr/bin/env python3
"""Alerts and recording rules, checked and tested by promtool; each alert has its heading in docs/operations.md."""
import pathlib
import re
import shutil
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
FOLDER = ROOT / "dashboards/prometheus"


class RunbookTest(unittest.TestCase):
    def test_each_alert_leads_to_a_heading(self):
        headings = {heading.lower() for heading in re.findall(r"(?m)^#+ (\w+)$", (ROOT / "docs/operations.md").read_text())}
        runbooks = re.findall(r'runbook: "docs/operations.md#(\w+)"', (FOLDER / "alerts.yml").read_text())
        alerts = re.findall(r"- alert: (\w+)", (FOLDER / "alerts.yml").read_text())

        self.assertEqual([alert.lower() for alert in alerts], runbooks)
        self.assertEqual(set(runbooks) - headings, set())

    def test_each_alert_is_seen_to_fire(self):
        tests = (FOLDER / "tests/alerts_test.yml").read_text()
        for name in re.findall(r"- alert: (\w+)", (FOLDER / "alerts.yml").read_text()):
            self.assertIn(f"alertname: {name}\n        exp_alerts:\n", tests)


@unittest.skipUnless(shutil.which("promtool"), "promtool is not installed (package prometheus)")
class PromtoolTest(unittest.TestCase):
    def promtool(self, *arguments):
        done = subprocess.run(["promtool", *arguments], cwd=FOLDER, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_rules_are_rules(self):
        self.assertIn("13 rules found", self.promtool("check", "rules", "--lint-fatal", "recording.yml", "alerts.yml"))

    def test_sample_configuration_is_one(self):
        self.promtool("check", "config", "scrape.yml")

    def test_alerts_fire_when_they_should_and_say_what_they_should(self):
        self.promtool("test", "rules", "tests/alerts_test.yml")


if __name__ == "__main__":
    unittest.main()

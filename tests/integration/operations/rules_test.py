#!/usr/bin/env python3
"""Alerts and recording rules, checked and tested by promtool; each alert says what to do, and has a
heading in docs/operations.md."""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import skips  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[3]
FOLDER = ROOT / "dashboards/prometheus"
NODE = 'job="spillway", instance="n1"'
JOB = NODE + ', job_id="slurm-7", gpu="0", uuid="GPU-1"'
SCRAPES_PER_MINUTE = 4
# For each alert about a lasting state: the minutes after which it may fire, and the state: a value,
# or "+" and a rise per minute.
LASTING = {
    "SpillwayAgentDown": (2, {f"up{{{NODE}}}": "0"}),
    "SpillwayConfigReloadFailed": (5, {f"spillway_config_last_reload_successful{{{NODE}}}": "0"}),
    "SpillwayJobWaitsLong": (30, {f'spillway_jobs{{{NODE}, phase="waiting"}}': "2"}),
    "SpillwayJobThrashing": (10, {f'spillway_job_stall_seconds_total{{{JOB}, cause="demand"}}': "+45"}),
    "SpillwayMemoryBypassed": (5, {f'spillway_gpu_memory_unmanaged_bytes{{{NODE}, gpu="0", uuid="GPU-1"}}': str(4 << 30)}),
    "SpillwayHostMemoryNearlyFull": (10, {f"spillway_job_memory_host_bytes{{{JOB}}}": "95", f"spillway_host_memory_size_bytes{{{NODE}}}": "100"}),
    "SpillwayBudgetsReturnLate": (10, {f"spillway_overdue_returns_total{{{NODE}}}": "+1"}),
    "SpillwayOrdinaryMemoryUsed": (30, {f"spillway_host_memory_ordinary_bytes{{{NODE}}}": "2048"}),
    "SpillwayPrefetchesLate": (10, {f'spillway_job_prefetches_total{{{JOB}, result="{result}"}}': "+60" for result in ("late", "hit")}),
    "SpillwayNodeDrained": (120, {f"spillway_draining{{{NODE}}}": "1"}),
    "SpillwayDeviceUnknown": (5, {f"spillway_unknown_devices{{{NODE}}}": "2"}),
    "SpillwayDeviceNotFound": (5, {f'spillway_gpu_found{{{NODE}, gpu="0", uuid="GPU-1"}}': "0"}),
    "SpillwayConnectionsRefused": (10, {f'spillway_connections_total{{{NODE}, result="refused"}}': "+3"}),
    "SpillwayFaultyFrames": (10, {f"spillway_faulty_frames_total{{{NODE}}}": "+3"}),
    "SpillwayJobUnplanned": (30, {f"spillway_job_demand_fetches_total{{{JOB}}}": "+120",
                                  f'spillway_job_phase{{{JOB}, phase="planned"}}': "0"}),
    "SpillwayPlanMissed": (30, {f"spillway_job_{kind}_total{{{JOB}}}": "+60" for kind in ("steps", "missed_steps")}),
    "SpillwayJobOverBudget": (10, {f"spillway_job_memory_resident_bytes{{{JOB}}}": "4096",
                                  f"spillway_job_memory_budget_bytes{{{JOB}}}": "2048"}),
    "SpillwayProcessesDetached": (15, {f'spillway_job_processes{{{NODE}, job_id="slurm-7", state="detached"}}': "2"}),
    "SpillwayTurnWaitsLong": (15, {f"spillway_job_turn_waiting{{{JOB}}}": "1"}),
    "SpillwayPoolShort": (10, {f"spillway_pool_unserved_bytes{{{NODE}}}": "2048"}),
    "SpillwayPlanningQueueLong": (10, {f'spillway_plan_requests{{{NODE}, state="waiting"}}': "3"}),
    "SpillwayPlanningFails": (15, {f'spillway_plan_requests_total{{{NODE}, result="{result}"}}': "+60" for result in ("failed", "made")}),
}
# For the other alerts: events from before Prometheus's first scrape, not repeated since.
EVENTS = {
    "SpillwayAgentRestarts": {f"process_start_time_seconds{{{NODE}}}": "1700000000"},
    "SpillwayJobRefusedMemory": {f"spillway_job_allocation_failures_total{{{JOB}}}": "5"},
    "SpillwayPlansNotKept": {f"spillway_plan_store_write_failures_total{{{NODE}}}": "5"},
    "SpillwayPlansDamaged": {f'spillway_plan_store_discarded_total{{{NODE}, reason="damaged"}}': "5"},
    "SpillwayPlanRequestsRefused": {f'spillway_plan_requests_total{{{NODE}, result="refused"}}': "5"},
    "SpillwayJobRejected": {f'spillway_admissions_total{{{NODE}, result="rejected"}}': "5"},
    "SpillwayRecomputesDiffer": {f"spillway_job_mismatched_recomputes_total{{{JOB}}}": "5"},
    "SpillwaySlabsNotMade": {f"spillway_pool_not_made_total{{{NODE}}}": "5"},
}
OF_NO_SERIES = {"SpillwayNotScraped"}


def scrapes(value, minutes, fails):
    """The samples that Prometheus has of a series; `fails(i)`: scrape i failed."""
    step = float(value[1:]) / SCRAPES_PER_MINUTE if value[0] == "+" else 0
    begin = 0 if value[0] == "+" else float(value)
    return " ".join("stale" if fails(i) else str(begin + i * step) for i in range(minutes * SCRAPES_PER_MINUTE))


def firing(series, minutes, alert, expected, fails=lambda i: False):
    """One of promtool's tests: the minutes at which the alert fires."""
    return {"interval": "15s",
            "input_series": [{"series": name, "values": scrapes(value, minutes + 5, fails)} for name, value in series.items()],
            "promql_expr_test": [{"expr": f'count(ALERTS{{alertname="{alert}", alertstate="firing"}})', "eval_time": f"{at}m",
                                  "exp_samples": [{"labels": "{}", "value": 1}] if is_firing else []} for at, is_firing in expected.items()]}


def named(kind, file):
    return re.findall(rf"- {kind}: (\S+)", (FOLDER / file).read_text())


def alerts():
    """By name: the alert's expression and duration. Our files have one of each per line."""
    found = {}
    for text in re.split(r"(?m)^ +- alert: ", (FOLDER / "alerts.yml").read_text())[1:]:
        name, fields = text.split()[0], dict(re.findall(r"(?m)^ +(expr|for): (.+)$", text))
        found[name] = {"alert": name, **fields}
    return found


ALERTS = alerts()


def without_a_pair(tests):
    """Alerts and recording rules without data that fires, or without data that does not."""
    fires = set(re.findall(r"alertname: (\w+)\n +exp_alerts:\n +- exp_labels", tests))
    silent = set(re.findall(r"alertname: (\w+), exp_alerts: \[\]", tests))
    has_value = set(re.findall(r"expr: (\S+)\n +eval_time: \w+\n +exp_samples:\n +- \{labels: .*, value: (?!0\})", tests))
    has_none = set(re.findall(r"\{expr: '(\S+)', eval_time: \w+, exp_samples: \[(?:\{labels: [^}]*\}', value: 0\})?\]\}", tests))
    return sorted((set(named("alert", "alerts.yml")) - (fires & silent)) | (set(named("record", "recording.yml")) - (has_value & has_none)))


class RunbookTest(unittest.TestCase):
    def test_each_alert_leads_to_a_heading(self):
        headings = {heading.lower() for heading in re.findall(r"(?m)^#+ (\w+)$", (ROOT / "docs/operations.md").read_text())}
        runbooks = re.findall(r'runbook: "docs/operations.md#(\w+)"', (FOLDER / "alerts.yml").read_text())
        alerts = re.findall(r"- alert: (\w+)", (FOLDER / "alerts.yml").read_text())

        self.assertEqual([alert.lower() for alert in alerts], runbooks)
        self.assertEqual(set(runbooks) - headings, set())

    def test_each_rule_is_tested_with_data_that_fires_and_data_that_does_not(self):
        tests = (FOLDER / "tests/alerts_test.yml").read_text()
        self.assertEqual(without_a_pair(tests), [])
        for gone in ("alertname: SpillwayPoolShort\n", "alertname: SpillwayPoolShort, exp_alerts: []"):
            self.assertEqual(without_a_pair(tests.replace(gone, "alertname: Other")), ["SpillwayPoolShort"])
        idle = "expr: 'instance:spillway_jobs_waiting:sum'"
        self.assertEqual(without_a_pair(tests.replace(idle, "expr: 'x'")), ["instance:spillway_jobs_waiting:sum"])

    def test_each_alert_says_how_bad_it_is_and_what_to_do(self):
        for alert in re.split(r"(?m)^ +- alert: ", (FOLDER / "alerts.yml").read_text())[1:]:
            name = alert.split()[0]
            self.assertRegex(alert, r"labels: \{severity: (critical|warning|info)\}\n", name)
            self.assertRegex(alert, r'summary: "[^"]', name)
            self.assertRegex(alert, r'description: "[^"]{40,}', name)


@unittest.skipUnless(shutil.which("promtool"), "promtool is not installed (package prometheus)")
class PromtoolTest(unittest.TestCase):
    def promtool(self, *arguments):
        done = subprocess.run(["promtool", *arguments], cwd=FOLDER, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_rules_are_valid(self):
        self.assertIn(f"{len(named('alert', 'alerts.yml'))} rules found", self.promtool("check", "rules", "--lint-fatal", "recording.yml", "alerts.yml"))

    def test_sample_configuration_is_valid(self):
        self.promtool("check", "config", "scrape.yml")

    def test_alerts_fire_at_the_right_time_with_the_right_text(self):
        self.promtool("test", "rules", "tests/alerts_test.yml")

    def hold(self, tests):
        """Each alert's test, with that alert and the recording rules alone: all of them for each test would take minutes."""
        with tempfile.TemporaryDirectory() as folder:
            for name, test in tests.items():
                rules, recording = pathlib.Path(folder, f"{name}.yml"), str(FOLDER / "recording.yml")
                rules.write_text(f"groups: [{{name: {name}, rules: [" + json.dumps(ALERTS[name]) + "]}]")
                pathlib.Path(folder, f"{name}_test.yml").write_text(json.dumps(
                    {"rule_files": [recording, str(rules)], "evaluation_interval": "30s", "tests": [test]}))
            self.promtool("test", "rules", *map(str, pathlib.Path(folder).glob("*_test.yml")))

    def test_each_alert_is_tested_on_young_series(self):
        self.assertEqual(set(named("alert", "alerts.yml")), {*LASTING, *EVENTS, *OF_NO_SERIES})

    # Regression: two alerts fired within 30 s of a fresh Prometheus: their half hour was the half
    # minute of existing data.
    def test_none_fires_in_a_fresh_prometheus_before_its_time_has_passed(self):
        self.hold({name: firing(series, minutes + 8, name, {1: False, minutes - 1: False, minutes + 8: True})
                   for name, (minutes, series) in LASTING.items()})

    def test_events_before_the_first_scrape_do_not_fire(self):
        self.hold({name: firing(series, 40, name, dict.fromkeys((1, 5, 20, 40), False)) for name, series in EVENTS.items()})

    # Regression: one failed scrape in ten minutes restarted the alert's waiting time, for ever.
    def test_failed_scrapes_do_not_restart_the_waiting_time(self):
        self.hold({name: firing(series, minutes + 12, name, {minutes - 1: False, minutes + 12: True}, lambda i: i % 10 in (8, 9))
                   for name, (minutes, series) in LASTING.items() if name != "SpillwayAgentDown"})  # that alert is about failed scrapes

    def test_all_alerts_end_with_their_series(self):
        self.hold({name: firing(series, minutes + 8, name, {minutes + 8: True, minutes + 40: False})
                   for name, (minutes, series) in LASTING.items()})


if __name__ == "__main__":
    skips.main()

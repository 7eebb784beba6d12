#!/usr/bin/env python3
"""Dashboards, rules and alerts against what a real spillwayd exports; alerts also with a real
Prometheus. tests/operators/boards asks the boards' queries.

    usage: dashboards_test.py --build BUILD [unittest arguments]
"""
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path += [str(HERE.parent / "agent"), str(ROOT / "tools"), str(ROOT / "tests/support")]
import agent_test  # noqa: E402
import boards  # noqa: E402
import dashboards  # noqa: E402
import metrics_test  # noqa: E402
import prometheus  # noqa: E402
from agent_test import ACCOUNT, ADMISSION, ASK_SLABS, GIB, HELD_SLABS, STEP_TIMES, USAGE, Session  # noqa: E402

PLANNED = 2
PATIENCE_S = 60
TURN_S = 0.3  # between two looks
NEEDS_FLOOR = '[host]\nmemory = "16GiB"\n[defaults]\nguaranteed = "10GiB"\nfloor = "10GiB"\nworkspace_limit = "1GiB"\n[[user]]\njobs = 8\nhost_limit = "90%"\n'


class WaitingJob:
    """Another process that requests memory already budgeted to others."""

    def __init__(self, path):
        ready, tell = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            session = Session(path)
            session.hello()
            session.register(12 * GIB)
            os.write(tell, session.next(ADMISSION)[4:5])
            while True:
                signal.pause()
        os.close(tell)
        self.admission = os.read(ready, 1)[0]
        os.close(ready)

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


class NodeWithJobsTest(agent_test.AgentFixture):
    """One admitted job that follows its plan, and one that waits."""

    def setUp(self):
        super().setUp()
        self.configure(NEEDS_FLOOR)
        self.has_nvml = (agent_test.BUILD / "simulator/libnvidia-ml.so.1").exists()
        self.start(LD_LIBRARY_PATH=str(agent_test.BUILD / "simulator"), SPILLWAY_SIM_PROFILE="h200")
        self.session = Session(self.path)
        self.session.hello(newest=4)
        self.session.say(HELD_SLABS, struct.pack("<BI", 1, 0))
        self.session.register(12 * GIB)
        self.session.say(ASK_SLABS, struct.pack("<Iq", 0, 1))
        self.session.next(ADMISSION)
        serial, budget, _, _ = self.session.grant()
        self.session.obey(serial, budget)
        self.turns = 0
        self.use_memory()
        waiting = WaitingJob(self.path)
        self.addCleanup(waiting.kill)
        self.assertEqual(waiting.admission, 2)

    def use_memory(self):
        self.turns += 1
        moved = self.turns * GIB
        self.session.say(USAGE, struct.pack("<IBB10q", 0, 1, PLANNED, 14 * GIB, 12 * GIB, 0, 2 * GIB, moved, moved,
                                            self.turns * 10**7, self.turns, self.turns, 0))
        self.session.say(ACCOUNT, struct.pack("<I20q", 0, GIB, moved, 0, moved, 0, *[self.turns * 10**6] * 7,
                                              *[self.turns] * 8))
        self.session.say(STEP_TIMES, struct.pack("<I14q", 0, self.turns * 10**6, self.turns, *[0] * 12))
        self.spillway("jobs")

    def configure(self, more="", **settings):
        super().configure(more, **settings)
        path = self.folder / "spillway.toml"
        path.write_text(path.read_text().replace("find = false", "find = true"))

    def metrics_with_jobs(self):
        return self.until(lambda: self.get("/metrics")[1],
                          lambda text: 'phase="waiting"} 1' in text and "step_seconds_count" in text and
                          (not self.has_nvml or "unmanaged_bytes{" in text))

    def until(self, look, is_it):
        """Polls `look` until `is_it` holds or the patience ends, and returns its last result. The
        job continues meanwhile."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                seen = look()
                if is_it(seen) or time.monotonic() > deadline:
                    return seen
            except urllib.error.URLError:
                if time.monotonic() > deadline:
                    raise
            self.use_memory()
            time.sleep(TURN_S)


class NamesTest(NodeWithJobsTest):
    def test_every_name_and_label_is_exported(self):
        offences, count = dashboards.check(self.metrics_with_jobs())

        self.assertEqual(offences, [])
        self.assertGreater(count, 40)

    def test_an_unexported_metric_or_label_is_an_offence(self):
        metrics = {**dashboards.exported(self.metrics_with_jobs()), "up": set()}
        for wrong, offence in (("sum(spillway_gpus)", "no agent exports spillway_gpus"),
                               ('spillway_jobs{fase="waiting"}', "spillway_jobs has no label fase"),
                               ("sum by (host) (spillway_jobs)", "nothing that is named here has no label host")):
            self.assertEqual(list(dashboards.expression_offences(wrong, metrics)), [offence])
        self.assertEqual(list(dashboards.expression_offences('sum by (phase) (spillway_jobs{job="x"})', metrics)), [])


    def test_every_family_is_documented_and_shown_on_a_board(self):
        families, shown = set(metrics_test.documented()), set()
        for _, text in boards.boards():
            for _, expression in dashboards.board_expressions(json.loads(text)):
                shown |= {re.sub("_(bucket|sum|count)$", "", name) for name in dashboards.names_in(expression)}
        self.assertEqual(shown - families, set(dashboards.PROMETHEUS_OWN))
        self.assertEqual(families - shown, set())


class BoardsTest(unittest.TestCase):
    def setUp(self):
        self.boards = {path.stem: json.loads(text) for path, text in boards.boards()}
        self.metrics = {"spillway_job_phase": {"job_id", "gpu", "phase"}}

    def test_each_board_is_as_described(self):
        self.assertEqual(set(self.boards), {path.stem for path in dashboards.FOLDER.glob("grafana/*.json")})
        for path, text in boards.boards():
            self.assertEqual(path.read_text(), text, f"{path.name}: run tools/boards.py")

    def test_panels_lie_beside_each_other_without_overlap(self):
        for name, board in self.boards.items():
            cells = [(x, y) for panel in board["panels"] for at in [panel["gridPos"]]
                     for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])]
            self.assertEqual(len(cells), len(set(cells)), name)
            self.assertLess(max(x for x, _ in cells), 24, name)
            self.assertEqual(len({panel["id"] for panel in board["panels"]}), len(board["panels"]), name)

    def test_a_panel_that_ignores_a_variable_or_keeps_no_label_of_its_legend_is_an_offence(self):
        names = dashboards.variables(self.boards["spillway-job"])
        own = 'spillway_job_phase{job=~"$job", instance=~"$instance", job_id=~"$job_id", gpu=~"$gpu"}'
        self.assertEqual(list(dashboards.selector_offences(own, names, self.metrics)), [])
        self.assertEqual(len(list(dashboards.selector_offences(own.replace("job_id=~", "uuid=~"), names, self.metrics))), 1)
        target = {"expr": f"sum by (gpu) ({own})", "legendFormat": "{{gpu}}"}
        self.assertEqual(list(dashboards.legend_offences(target)), [])
        self.assertEqual(len(list(dashboards.legend_offences({**target, "legendFormat": "{{instance}}"}))), 1)

    def test_links_lead_to_the_job_and_to_its_live_page(self):
        links = {panel["title"]: panel["fieldConfig"]["defaults"].get("links", [])
                 for panel in self.boards["spillway-node"]["panels"] if panel["type"] == "timeseries"}
        self.assertEqual([one["url"].split("?")[0] for one in links["Budgets of jobs"]],
                         [f"/d/{self.boards['spillway-job']['uid']}", "${scheme}://${__field.labels.instance}/#job=${__field.labels.job_id}"])
        self.assertEqual([one["title"] for one in links["Device memory"]], ["Live page"])
        self.assertEqual(links["Jobs by phase"], [])

    @unittest.skipUnless(shutil.which("promtool"), "promtool is not installed (package prometheus)")
    def test_each_query_is_valid(self):
        expressions = [re.sub(r"\$__\w+", "1m", expression) for board in self.boards.values()
                       for _, expression in dashboards.board_expressions(board)]
        self.assertEqual(self.promtool(expressions), 0)
        self.assertNotEqual(self.promtool(["sum by (instance (up)"]), 0)

    def promtool(self, expressions):
        rules = [{"record": f"query:{number}", "expr": expression} for number, expression in enumerate(expressions)]
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
            json.dump({"groups": [{"name": "queries", "rules": rules}]}, file)
            file.flush()
            return subprocess.run(["promtool", "check", "rules", file.name], capture_output=True).returncode


@unittest.skipUnless(shutil.which("prometheus"), "prometheus is not installed")
class PrometheusTest(NodeWithJobsTest):
    def setUp(self):
        super().setUp()
        self.prometheus = prometheus.Prometheus(self.folder, f"127.0.0.1:{self.port}")
        self.addCleanup(self.prometheus.stop)

    def test_alerts_are_silent_without_a_problem(self):
        self.until(lambda: self.prometheus.query("instance:spillway_jobs_waiting:sum"), bool)
        # One job does wait, one uses ordinary memory, and NVML does not know their device.
        expected = {"SpillwayJobWaitsLong", "SpillwayOrdinaryMemoryUsed", "SpillwayPrefetchesLate", "SpillwayDeviceNotFound"}
        self.assertLessEqual(self.until(self.prometheus.alerts, lambda alerts: alerts <= expected), expected)

        self.configure("[agent]\n")
        self.assertEqual(self.spillway("config", "reload").returncode, 3)
        self.assertIn("SpillwayConfigReloadFailed",
                      self.until(self.prometheus.alerts, lambda alerts: "SpillwayConfigReloadFailed" in alerts))
        self.stop(signal.SIGKILL)
        self.turns_end()
        self.assertIn("SpillwayAgentDown",
                      self.until(self.prometheus.alerts, lambda alerts: "SpillwayAgentDown" in alerts))
        self.assertEqual(self.prometheus.health(), {what: "ok" for _, what, _ in dashboards.rules()})

    def turns_end(self):
        self.use_memory = lambda: None


if __name__ == "__main__":
    agent_test.main()

#!/usr/bin/env python3
"""Each query of Grafana's boards, asked of a real Prometheus that scrapes a real agent with running
jobs: under budgets with moved memory, with and without a plan, and in turns.

    usage: boards_test.py --build BUILD [unittest arguments]
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path += [str(ROOT / "tests/support"), str(ROOT / "tests/integration/agent"), str(ROOT / "tools")]
import agent_test  # noqa: E402
import dashboards  # noqa: E402
import node_agent  # noqa: E402
import prometheus  # noqa: E402
import skips  # noqa: E402

BUILD = None
PATIENCE_S = 90
MIB = 1 << 20
TRAINER = ("convnet", "--model=resnet18", "--batch=64", "--image=64", "--steps=1000000")  # wants 370 MiB
REACTIVE = ("gpt", "--layers=4", "--width=512", "--batch=4", "--steps=1000000")  # wants 260 MiB
TURNING_JOB = ROOT / "tests/integration/agent/turning_job.py"  # wants 160 MiB
CONFIG = f"""[agent]
http = "127.0.0.1:PORT"
usage_interval_ms = 100
[devices]
find = true
reserve = 0
[arbiter]
headroom = 0
[host]
memory = "2GiB"
slab = "8MiB"
[defaults]
workspace_limit = "64MiB"
floor = "32MiB"
[[user]]
jobs = 8
host_limit = "90%"
[[device]]
uuid = "{node_agent.uuid_of("h200")}"
memory = "400MiB"
[[device]]
uuid = "{node_agent.uuid_of("a100")}"
memory = "220MiB"
turns = "always"
[turns]
quantum_ms = 300
cost_factor = 1
"""
# What has no series here, and why.
WITHOUT_SERIES = {
    "Agent starts": "the agent starts once, before the first scrape",
    "Hard limits of jobs": "the agent sets none unless its configuration says so",
}
# Above zero in this run: these jobs move memory, wait, follow a plan and take turns.
ABOVE_ZERO = {
    "spillway-job": ("Budget, resident, wanted", "Evicted", "Brought back", "Waiting by cause", "Iterations", "Prefetches", "Iteration time",
                     "Host memory by kind", "Link share", "Wanted, of its budget", "Phase", "Processes", "Recomputed", "Launches repeated",
                     "Fingerprinted", "Device's time for fingerprints", "Evicted without a copy"),
    "spillway-node": ("Agents up", "Device memory", "Host memory", "Jobs by phase", "Transfers", "Brought back on demand", "Jobs in turns",
                      "Share of time spent waiting for turns", "Devices in turns", "Pool by NUMA node", "Jobs of users", "Plans by outcome",
                      "Operators' requests", "Agent's memory"),
}


def title_of(panel):
    """Without the words that say when there is data."""
    return re.sub(r" \((where|while|with|of|once) [^)]*\)$", "", panel)


class BoardsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="spillway-boards.")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.jobs = {}
        port = agent_test.free_port()
        cls.agent = node_agent.NodeAgent(BUILD, cls.folder, CONFIG.replace("PORT", str(port)))
        cls.agent.start(LD_LIBRARY_PATH=str(BUILD / "simulator"), SPILLWAY_SIM_PROFILE="h200")
        cls.addClassCleanup(cls.agent.stop)
        cls.start_jobs()
        (cls.folder / "prometheus").mkdir()
        cls.prometheus = prometheus.Prometheus(cls.folder / "prometheus", f"127.0.0.1:{port}")
        cls.addClassCleanup(cls.prometheus.stop)

    @classmethod
    def start_jobs(cls):
        machine = node_agent.Machine(BUILD, cls.folder)
        cls.jobs["trainer"] = machine.begin("trainer", 0, TRAINER, f"--agent={cls.agent.socket}")
        cls.jobs["reactive"] = machine.begin("reactive", 0, REACTIVE, f"--agent={cls.agent.socket}", "--no-learn")
        for name in ("first", "second"):
            cls.jobs[name] = cls.turning_job(name)
        for job in cls.jobs.values():
            cls.addClassCleanup(job.wait)
            cls.addClassCleanup(job.kill)
        cls.until(lambda: cls.agent.tenancies().get(cls.name_of("trainer"), {}).get("state") == "planned", "a plan")

    @classmethod
    def turning_job(cls, name):
        (cls.folder / name).mkdir()
        environment = {key: value for key, value in os.environ.items() if not key.startswith("SPILLWAY_")}
        command = [BUILD / "bin/spillway", "run", "--quiet", "--simulate=a100", "--park=off", f"--agent={cls.agent.socket}", "--",
                   sys.executable, TURNING_JOB, "steady", cls.folder / name]
        with open(cls.folder / f"{name}.errors", "wb") as output:
            return subprocess.Popen([str(word) for word in command], env=dict(environment, XDG_STATE_HOME=str(cls.folder / name)),
                                    stdout=output, stderr=output)

    @classmethod
    def name_of(cls, job):
        return f"local-{cls.jobs[job].pid}"

    @classmethod
    def until(cls, is_it, what):
        """Operators ask meanwhile: their requests have metrics, too."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            ended = [name for name, job in cls.jobs.items() if job.poll() is not None]
            if ended:
                raise AssertionError(f"{ended[0]} ended: " + (cls.folder / f"{ended[0]}.errors").read_text() + cls.agent.log())
            cls.agent.status()
            try:
                if is_it():
                    return
            except urllib.error.URLError as error:  # Prometheus begins, or (400) cannot read the query
                if getattr(error, "code", 0) == 400:
                    raise AssertionError(f"{what}: {error.read().decode()}") from error
            time.sleep(0.3)
        raise AssertionError(f"{what} did not come: {cls.agent.tenancies()}")

    def filled_in(self, expression, job):
        for variable, value in {"$__rate_interval": "20s", "$__range": "60s", "$instance": ".+", "$job_id": job, "$job": ".+", "$gpu": ".+"}.items():
            expression = expression.replace(variable, value)
        return expression

    def assert_answers(self, board, job, least=None):
        """Each query has series; those of the panels named in `least` have one above zero."""
        for title, expression in dashboards.board_expressions(json.loads((ROOT / f"dashboards/grafana/{board}.json").read_text())):
            query = self.filled_in(expression, job)
            if title in WITHOUT_SERIES:
                self.prometheus.query(query)
                continue
            with self.subTest(board=board, panel=title, query=query):
                self.until(lambda query=query: self.prometheus.query(query), f"data of '{title}': {query}")
        for title in least or ():
            self.assert_above_zero(board, job, title)

    def assert_above_zero(self, board, job, title):
        panels = json.loads((ROOT / f"dashboards/grafana/{board}.json").read_text())["panels"]
        targets = [target["expr"] for panel in panels if title_of(panel["title"]) == title for target in panel.get("targets", [])]
        self.assertNotEqual(targets, [], f"{board} has no panel '{title}'")
        values = lambda query: [float(sample["value"][1]) for sample in self.prometheus.query(query)]  # noqa: E731
        with self.subTest(board=board, panel=title):
            self.until(lambda: any(value > 0 for query in targets for value in values(self.filled_in(query, job))), f"'{title}' above zero")

    def test_every_query_of_the_node_board_has_data(self):
        self.assert_answers("spillway-node", ".+", ABOVE_ZERO["spillway-node"])

    def test_every_query_of_the_job_board_has_data_of_a_planned_job(self):
        self.assert_answers("spillway-job", self.name_of("trainer"), ABOVE_ZERO["spillway-job"])

    def test_a_job_without_a_plan_and_one_in_turns_have_data_too(self):
        self.assert_answers("spillway-job", self.name_of("reactive"), ("Fetched by the call that needed them",))
        self.assert_answers("spillway-job", self.name_of("first"), ("Turns", "Waiting for turns"))

    # Regression: workspaces that the program had freed counted as idle ones on the device.
    def test_figures_of_a_job_agree_with_each_other(self):
        mine = f'{{job_id="{self.name_of("trainer")}"}}'
        for part, whole in (("workspace_idle", "memory_resident"), ("memory_resident", "memory_budget"), ("memory_unmovable", "memory_resident")):
            both = f"spillway_job_{part}_bytes{mine} <= spillway_job_{whole}_bytes{mine}"
            self.until(lambda both=both: self.prometheus.query(both), both)

    def test_every_rule_is_evaluated_and_what_is_recorded_has_data(self):
        self.until(lambda: set(self.prometheus.health().values()) == {"ok"}, "every rule's health")
        self.assertEqual(set(self.prometheus.health()), {what for _, what, _ in dashboards.rules()})
        for _, what, _ in dashboards.rules():
            if ":" in what:
                with self.subTest(record=what):
                    self.until(lambda what=what: self.prometheus.query(what), what)

    def test_no_alert_is_critical_while_jobs_move_their_memory(self):
        self.until(lambda: self.prometheus.query("instance:spillway_jobs_waiting:sum"), "data")
        firing = [alert["labels"] for alert in self.prometheus.api("alerts")["alerts"] if alert["state"] == "firing"]
        self.assertEqual([alert for alert in firing if alert["severity"] != "info"], [])


def main():
    global BUILD
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True, type=pathlib.Path)
    options, rest = parser.parse_known_args()
    BUILD = options.build.resolve()
    if not shutil.which("prometheus"):
        skips.leave_out("not installed: prometheus (Debian: prometheus)")
    skips.main(rest, warnings="ignore")


if __name__ == "__main__":
    main()

"""A real Prometheus that scrapes one agent, with our rules and alerts."""
import json
import pathlib
import socket
import subprocess
import time
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATIENCE_S = 60


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Prometheus:
    """It scrapes and evaluates every second. Returns when it answers."""

    def __init__(self, folder, target):
        self.folder = folder
        for path in (ROOT / "dashboards/prometheus").glob("*.yml"):
            (folder / path.name).write_text(path.read_text().replace("interval: 30s", "interval: 1s"))
        scrape = (folder / "scrape.yml").read_text().replace("127.0.0.1:9477", target)
        scrape = scrape.replace("scrape_interval: 15s", "scrape_interval: 1s")
        (folder / "prometheus.yml").write_text("global: {evaluation_interval: 1s}\n" + scrape)
        self.log = open(folder / "prometheus.log", "ab")
        deadline = time.monotonic() + PATIENCE_S
        # Another process may take the port meanwhile, and answer nothing.
        while not self.starts(deadline):
            if time.monotonic() > deadline:
                raise RuntimeError("Prometheus does not start: " + (folder / "prometheus.log").read_text())

    def starts(self, deadline):
        self.address = f"127.0.0.1:{free_port()}"
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={self.folder}/prometheus.yml", f"--storage.tsdb.path={self.folder}/data",
             f"--web.listen-address={self.address}", "--log.level=warn"], stdout=self.log, stderr=self.log)
        while self.process.poll() is None and time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(f"http://{self.address}/-/ready", timeout=2):
                    return self.process.poll() is None
            except OSError:
                time.sleep(0.1)
        self.process.kill()
        self.process.wait()
        return False

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.log.close()

    def api(self, path, **parameters):
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"http://{self.address}/api/v1/{path}?{query}", timeout=PATIENCE_S) as answer:
            return json.load(answer)["data"]

    def query(self, expression):
        return self.api("query", query=expression)["result"]

    def alerts(self):
        return {alert["labels"]["alertname"] for alert in self.api("alerts")["alerts"]}

    def health(self):
        """By rule: "ok", if its last evaluation succeeded."""
        return {rule["name"]: rule["health"] for group in self.api("rules")["groups"] for rule in group["rules"]}

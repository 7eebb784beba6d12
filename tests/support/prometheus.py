"""A real Prometheus that scrapes one agent, with our rules and alerts."""
import json
import pathlib
import subprocess
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATIENCE_S = 60


class Prometheus:
    """It scrapes and evaluates every second, and listens at `port`."""

    def __init__(self, folder, port, target):
        self.address = f"127.0.0.1:{port}"
        for path in (ROOT / "dashboards/prometheus").glob("*.yml"):
            (folder / path.name).write_text(path.read_text().replace("interval: 30s", "interval: 1s"))
        scrape = (folder / "scrape.yml").read_text().replace("127.0.0.1:9477", target)
        scrape = scrape.replace("scrape_interval: 15s", "scrape_interval: 1s")
        (folder / "prometheus.yml").write_text("global: {evaluation_interval: 1s}\n" + scrape)
        self.log = open(folder / "prometheus.log", "ab")
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
             f"--web.listen-address={self.address}", "--log.level=warn"], stdout=self.log, stderr=self.log)

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

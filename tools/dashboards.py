#!/usr/bin/env python3
"""Checks every expression of the boards, rules and alerts in dashboards/ against the metrics of a running agent.

usage: dashboards.py METRICS     METRICS: a file with the text of /metrics, or its http:// address; of an agent that has a
job, NVML, and limits (docs/operations.md)

Names of metrics, and labels in selectors and groupings, must be the agent's own (or a recorded rule's, or what Prometheus adds).
Panels must have a title, a description, a unit and the board's data source; selectors must use those of the board's variables that
the metric has as labels. Legends may name only labels that the panel's series keep. Exit code 1 and one line per offence.
"""
import json
import pathlib
import re
import sys
import urllib.request

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "dashboards"
ADDED_LABELS = {"job", "instance"}  # the scrape adds these
PROMETHEUS_OWN = {"up": set(), "scrape_duration_seconds": set(), "ALERTS": {"alertname", "alertstate", "severity", "job_id", "gpu", "uuid"}}
GROUPING = re.compile(r"\b(by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")
SELECTOR = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)?\s*\{([^}]*)\}")
MATCHER = re.compile(r'([a-zA-Z_]\w*)\s*(=~|!~|!=|=)\s*"')
NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
RANGE = re.compile(r"\[[^\]]*\]")
WORDS = {"and", "or", "unless", "offset", "bool", "inf", "nan"}
LEGEND_LABEL = re.compile(r"\{\{(\w+)\}\}")
WINDOWS = {"[$__rate_interval]", "[$__range]"}


def exported(text):
    """Metric name -> its labels, from a scrape."""
    metrics = {}
    for line in text.splitlines():
        sample = re.match(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(.*)\})? ", line)
        if sample and not line.startswith("#"):
            metrics.setdefault(sample[1], set()).update(re.findall(r'([a-zA-Z_]\w*)="', sample[3] or ""))
    return metrics


def names_in(expression):
    """The metrics in an expression."""
    text = GROUPING.sub(" ", expression)
    text = re.sub(r"\{[^}]*\}", " ", text)
    text = RANGE.sub(" ", re.sub(r'"[^"]*"', " ", text))
    for found in NAME.finditer(text):
        is_call = text[found.end():].lstrip().startswith("(")
        is_unit = found.start() > 0 and text[found.start() - 1].isdigit()
        if not is_call and not is_unit and found[0].lower() not in WORDS:
            yield found[0]


def labels_in(expression):
    """Labels in groupings, and (metric, label) in selectors."""
    for _, names in GROUPING.findall(expression):
        for label in filter(None, map(str.strip, names.split(","))):
            yield None, label
    for metric, body in SELECTOR.findall(expression):
        for label, _ in MATCHER.findall(body):
            yield metric, label


def expression_offences(expression, metrics):
    used = list(names_in(expression))
    for name in used:
        if name not in metrics:
            yield f"no agent exports {name}"
    all_labels = set().union(ADDED_LABELS, *(metrics.get(name, set()) for name in used))
    for metric, label in labels_in(expression):
        own = all_labels if metric is None else metrics.get(metric, all_labels) | ADDED_LABELS
        if label not in own:
            yield f"{metric or 'nothing that is named here'} has no label {label}"


def rules():
    """(file, name, expression) of each rule. Our files have one expression per line."""
    for path in sorted(FOLDER.glob("prometheus/*.yml")):
        what = None
        for line in path.read_text().splitlines():
            begin = re.match(r"\s*- (alert|record): (\S+)", line)
            what = begin[2] if begin else what
            expression = re.match(r"\s*expr: (.+)", line)
            if expression:
                yield path, what, expression[1]


def recorded(metrics):
    """Recorded metrics, with the labels of their source metrics."""
    made = {}
    for _, what, expression in rules():
        if ":" in what:
            grouped = [names for word, names in GROUPING.findall(expression) if word == "by"]
            labels = {label.strip() for names in grouped for label in names.split(",")}
            made[what] = labels or set().union(*(metrics.get(name, set()) for name in names_in(expression)))
    return made


def board_expressions(board):
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]
    for annotation in board["annotations"]["list"]:
        yield annotation["name"], annotation["expr"]
    for variable in board["templating"]["list"]:
        query = re.fullmatch(r"label_values\((.*), *(\w+)\)", variable.get("definition", ""))
        if query:
            yield "variable " + variable["name"], f"count by ({query[2]}) ({query[1]})"


def variables(board):
    return [variable["name"] for variable in board["templating"]["list"] if variable["type"] == "query"]


def selector_offences(expression, names, metrics):
    for metric, body in SELECTOR.findall(expression):
        known = metrics.get(metric, set()) | ADDED_LABELS
        # An alert of a whole job has no device.
        missing = [name for name in names if name in known and f'{name}=~"${name}"' not in body and not (metric == "ALERTS" and name == "gpu")]
        if missing:
            yield f"does not honour the board's {', '.join(missing)} in {metric}{{{body}}}"


def legend_offences(target):
    groups = [names for word, names in GROUPING.findall(target["expr"]) if word == "by"]
    kept = {label.strip() for names in groups for label in names.split(",")}
    for label in LEGEND_LABEL.findall(target.get("legendFormat", "")):
        if groups and label not in kept:
            yield f"has a legend with {label}, which its series do not keep"


def panel_offences(panel, names, metrics):
    for key in ("title", "description", "targets"):
        if not panel.get(key):
            yield f"has no {key}"
    if not panel.get("fieldConfig", {}).get("defaults", {}).get("unit"):
        yield "has no unit"
    for place in [panel, *panel.get("targets", [])]:
        if place.get("datasource", {}).get("uid") != "${datasource}":
            yield "does not use the board's data source"
    for target in panel.get("targets", []):
        yield from selector_offences(target["expr"], names, metrics)
        yield from legend_offences(target)
        for window in RANGE.findall(target["expr"]):
            if window not in WINDOWS:
                yield f"has a fixed window {window}"


def board_offences(path, metrics):
    board = json.loads(path.read_text())
    for panel in board["panels"]:
        if panel["type"] != "row":
            for offence in panel_offences(panel, variables(board), metrics):
                yield f"panel '{panel['title']}' {offence}"
    for where, expression in board_expressions(board):
        for offence in expression_offences(expression, metrics):
            yield f"'{where}': {offence}"


def check(text):
    """All offences, and the number of expressions."""
    metrics = {**exported(text), **PROMETHEUS_OWN}
    metrics.update(recorded(metrics))
    found, count = [], 0
    for path, what, expression in rules():
        count += 1
        found += [f"{path.relative_to(FOLDER)}: {what}: {offence}" for offence in expression_offences(expression, metrics)]
    for path in sorted(FOLDER.glob("grafana/*.json")):
        count += len(list(board_expressions(json.loads(path.read_text()))))
        found += [f"{path.relative_to(FOLDER)}: {offence}" for offence in board_offences(path, metrics)]
    return found, count


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    source = sys.argv[1]
    text = urllib.request.urlopen(source).read().decode() if source.startswith("http://") else pathlib.Path(source).read_text()
    found, count = check(text)
    for offence in found:
        print(offence)
    print(f"{count} expressions, {len(found)} offences against what the agent exports")
    return 1 if found or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())

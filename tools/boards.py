#!/usr/bin/env python3
"""Writes Grafana's boards (dashboards/grafana) from their descriptions (dashboards/boards).

    usage: boards.py [--check]

A description says what a board shows; this file says how every board looks. A `$name` of the board's selectors in an expression
stands for that selector. With --check it writes nothing, and names each board that differs; the exit code is then 1.
"""
import argparse
import json
import pathlib
import re
import string
import sys
import tomllib

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "dashboards"
DATA_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
COLUMNS = 24
SIZES = {"stat": (3, 4), "panel": (8, 8), "table": (COLUMNS, 8)}  # width and height
GROUPING = re.compile(r"\bby \(([^)]*)\)")
LIVE_PAGE = "${scheme}://${__field.labels.instance}/"
JOB_BOARD = "/d/spillway-job?var-instance=${__field.labels.instance}&var-job_id=${__field.labels.job_id}&${__url_time_range}"


def steps(first, then, begin):
    return {"mode": "absolute", "steps": [{"color": first, "value": None}, {"color": then, "value": begin}]}


def series_links(panel, board_uid):
    """What a click on a series opens, by the labels that all series of the panel keep."""
    kept = [set(re.split(r",\s*", found[1])) if (found := GROUPING.search(query)) else set() for _, query in panel["queries"]]
    labels = set.intersection(*kept)
    links = []
    if {"instance", "job_id"} <= labels and board_uid != "spillway-job":
        links.append({"title": "This job's board", "url": JOB_BOARD})
    if "instance" in labels:
        page = LIVE_PAGE + ("#job=${__field.labels.job_id}" if "job_id" in labels else "")
        links.append({"title": "Live page", "url": page, "targetBlank": True})
    return links


def defaults_of(panel, kind, board_uid):
    defaults = {"unit": panel.get("unit", "none")}
    least = panel.get("least", 0 if kind == "panel" or "most" in panel else None)
    defaults.update({key: value for key, value in (("min", least), ("max", panel.get("most"))) if value is not None})
    if panel.get("stacked"):
        defaults["custom"] = {"stacking": {"mode": "normal"}, "fillOpacity": 20}
    if "warn_from" in panel:
        defaults["thresholds"] = steps("green", "orange", panel["warn_from"])
    if "bad_below" in panel:
        defaults["thresholds"] = steps("red", "green", panel["bad_below"])
    if kind == "panel" and (links := series_links(panel, board_uid)):
        defaults["links"] = links
    return defaults


def options_of(panel, kind):
    if kind == "stat":
        return {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "value", "textMode": "name" if panel.get("named") else "auto"}
    return {} if kind == "table" else {"tooltip": {"mode": "multi"}, "legend": {"displayMode": "list", "placement": "bottom"}}


def target(index, legend, expression, kind):
    fields = {"refId": string.ascii_uppercase[index], "datasource": DATA_SOURCE, "expr": expression, "legendFormat": legend}
    return {**fields, "format": "table", "instant": True} if kind == "table" else fields


def panel_of(panel, kind, board):
    made = {"type": {"panel": "timeseries"}.get(kind, kind), "title": panel["title"], "description": panel["description"],
            "datasource": DATA_SOURCE, "fieldConfig": {"defaults": defaults_of(panel, kind, board["uid"]), "overrides": []},
            "targets": [target(index, legend, with_selectors(query, board["selectors"]), kind)
                        for index, (legend, query) in enumerate(panel["queries"])], "options": options_of(panel, kind)}
    return {**made, "transformations": [{"id": "merge", "options": {}}]} if kind == "table" else made


def with_selectors(expression, selectors):
    for name, selector in selectors.items():
        expression = re.sub(rf"\${name}\b", lambda _: selector, expression)
    return expression


class Layout:
    """Places panels from left to right, and below where they do not fit."""

    def __init__(self):
        self.x = self.y = self.height = 0

    def place(self, width, height):
        if self.x + width > COLUMNS:
            self.end_line()
        at = {"h": height, "w": width, "x": self.x, "y": self.y}
        self.x, self.height = self.x + width, max(self.height, height)
        return at

    def end_line(self):
        self.x, self.y, self.height = 0, self.y + self.height, 0


def panels_of(board):
    layout, panels = Layout(), []
    for row in board["row"]:
        layout.end_line()
        panels.append({"type": "row", "title": row["title"], "collapsed": False, "gridPos": layout.place(COLUMNS, 1), "panels": []})
        for kind, (width, height) in SIZES.items():
            for panel in row.get(kind, []):
                at = layout.place(panel.get("width", width), height)
                panels.append({**panel_of(panel, kind, board), "gridPos": at})
    return [{"id": number, **panel} for number, panel in enumerate(panels, start=1)]


def variable_of(variable):
    made = {"name": variable["name"], "label": variable["label"], "type": "query", "datasource": DATA_SOURCE,
            "query": {"query": variable["values"], "refId": variable["name"]}, "definition": variable["values"], "refresh": 2, "sort": 1}
    if variable.get("one"):
        return {**made, "includeAll": False, "multi": False}
    return {**made, "includeAll": True, "allValue": ".+", "multi": True, "current": {"text": "All", "value": "$__all"}}


def variables_of(board):
    source = {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "current": {}}
    schemes = [{"text": name, "value": name, "selected": name == "http"} for name in ("http", "https")]
    scheme = {"name": "scheme", "label": "Live page by", "type": "custom", "query": "http,https", "options": schemes,
              "current": schemes[0], "includeAll": False, "multi": False}
    return [source, *map(variable_of, board["variable"]), scheme]


def agent_starts():
    return {"name": "Agent starts", "datasource": DATA_SOURCE, "enable": True, "iconColor": "orange", "titleFormat": "agent started",
            "expr": 'changes(process_start_time_seconds{job=~"$job", instance=~"$instance"}[5m]) > 0'}


def made_of(board):
    return {"uid": board["uid"], "title": board["title"], "description": board["description"], "tags": ["spillway"], "schemaVersion": 39,
            "version": 1, "editable": False, "graphTooltip": 1, "refresh": "30s", "time": {"from": "now-1h", "to": "now"},
            "timezone": "browser",
            "links": [{"type": "dashboards", "title": "Spillway", "tags": ["spillway"], "asDropdown": False, "keepTime": True,
                       "includeVars": True}],
            "annotations": {"list": [agent_starts()]}, "templating": {"list": variables_of(board)}, "panels": panels_of(board)}


def boards():
    """(path of the board, its text) of each description."""
    for path in sorted(FOLDER.glob("boards/*.toml")):
        made = made_of(tomllib.loads(path.read_text()))
        yield FOLDER / "grafana" / f"{made['uid']}.json", json.dumps(made, indent=1) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    differing = [(path, text) for path, text in boards() if not path.exists() or path.read_text() != text]
    for path, text in differing:
        print(f"{path.relative_to(FOLDER.parent)}: " + ("differs from its description: run tools/boards.py" if options.check else "written"))
        if not options.check:
            path.write_text(text)
    return 1 if options.check and differing else 0


if __name__ == "__main__":
    sys.exit(main())

"""The last output: a table short enough for a terminal that shows only the end."""
import json
import os
import re


def _figures(session):
    """Probe figures, one line per subject: the text before the last colon, then each measurement."""
    try:
        with open(session.result_file("probe.json"), encoding="utf-8") as file:
            cases = json.load(file)["cases"]
    except (OSError, ValueError):
        return []
    lines = []
    for case in cases:
        item = re.sub(r"(?<=[a-z])(?=[A-Z0-9])|(?<=[0-9])(?=[A-Z])", " ", case["name"].split(".")[0])
        rows = {}
        for figure in case["figures"]:
            subject, _, what = figure["name"].rpartition(": ")
            rows.setdefault(subject, []).append(f"{what} {figure['value']:.3g} {figure['unit']}")
        for subject, values in rows.items():
            lines.append(f"  {item}{', ' + subject if subject else ''}: " + ", ".join(values))
        if case["observations"]:
            lines.append(f"  {case['name']}: " + "; ".join(case["observations"]))
    return lines


def _ratio(run, bare):
    """Of a late step where the program times its steps; else of the whole run."""
    if not bare or run is bare:
        return ""
    key = "late_step_ms" if run.get("late_step_ms") and bare.get("late_step_ms") else "seconds"
    return f"{run[key] / bare[key]:.2f}x{' a step' if key == 'late_step_ms' else ''}" if bare[key] else ""


def _runs(name, runs):
    lines = []
    bare = next((run for run in runs if run["budget"] == "bare"), None)
    for run in runs:
        report = run.get("report") or {}
        moved = (report.get("offloaded_bytes", 0) + report.get("restored_bytes", 0)) / 2**20
        held = f", held {report.get('resident_peak_bytes', 0) / 2**20:.0f} of {report.get('budget_bytes', 0) / 2**20:.0f} MiB, " \
               f"moved {moved:.0f} MiB" if report else ""
        same = "" if run is bare else ", same output" if run["same_output"] else ", OUTPUT DIFFERS"
        step = f", a step {run['late_step_ms']:.2f} ms" if run.get("late_step_ms") else ""
        lines.append(f"  {name} {run['budget']}: {run['seconds']} s{step} {_ratio(run, bare)}{same}{held} {run.get('why', '')}")
    return lines


def show(session):
    label = " (simulated device)" if session.simulated else " (dry run)" if session.dry else ""
    lines = ["", f"=== tests/gpu/run{label}: {session.facts['gpu']}, driver {session.facts['driver']}, "
             f"{session.facts['date']}, commit {session.facts['commit']}"]
    for step in session.steps:
        for name, failures in list(step.get("failures", {}).items())[:12]:
            lines.append(f"  {step['name']}: {name}: {failures[0][:150] if failures else ''}")
        lines += [f"  {step['name']}: {target}: {why[:200]}" for target, why in step.get("missing", {}).items()]
        lines += _runs(step["name"], step.get("runs", []))
        for program in step.get("programs", []):
            lines += _runs(program["name"], program["runs"])
    lines += [line[:400] for line in _figures(session)] if any(s["name"] == "probe" for s in session.steps) else []
    lines.append(f"{'step':20}{'verdict':10}{'seconds':>8}  summary")
    for step in session.steps:
        lines.append(f"{step['name']:20}{step['verdict']:10}{step['seconds']:8.1f}  {step['summary'][:200]}")
    lines.append(f"written to {os.path.relpath(session.results)}")
    session.say("\n".join(lines))

"""docs/gpu, item 5: do real cudaMalloc and launches pass through the hooks?"""
import json
import os
import re
import signal
import subprocess
import threading

# The allowed difference between a bare process and one under Spillway: one pooled chunk of the
# largest size (256 MiB), plus about 64 MiB for contexts, kernels and events.
SLACK_BYTES = (256 + 64) << 20


def device_used_bytes(session):
    """nvidia-smi's figure for the device, from a process without preloads; None where it cannot
    tell."""
    if session.simulated:
        return None
    try:
        output = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "--id=0"],
                                capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r"\d+", output.stdout)
    return int(match.group()) << 20 if match else None


def _run(session, prefix, program):
    """Starts the program, reads the device's memory while the program holds its own, and lets it
    end."""
    process = session.start([*prefix, program, "--hold"])
    limit = threading.Timer(60, os.killpg, (process.pid, signal.SIGKILL))
    limit.start()
    line = process.stdout.readline()
    used = device_used_bytes(session)
    _, stderr = process.communicate(input="\n")
    limit.cancel()
    session.log.write(f"\n$ {' '.join([*prefix, program])}\n{line}{stderr}[{process.returncode}]\n")
    said = json.loads(line) if line.startswith("{") else None
    return process.returncode, said, used


def _check(session, linkage):
    program = session.path("tests-bin", f"runtime_program_{linkage}")
    report_path = session.path(f"hooks-{linkage}.json")
    if os.path.exists(report_path):
        os.unlink(report_path)
    idle = device_used_bytes(session)
    bare_code, bare, bare_used = _run(session, [], program)
    code, said, used = _run(session, session.spillway("--quiet", "--report", report_path), program)
    report = json.load(open(report_path, encoding="utf-8")) if os.path.exists(report_path) else None
    result = {"linkage": linkage, "bare_exit": bare_code, "exit": code, "program": said, "report": report,
              "device_bytes": {"idle": idle, "bare": bare_used, "spillway": used}}
    wrong = []
    if bare_code != 0 or not bare:
        wrong.append(f"bare run ended with {bare_code}")
    if code != 0 or not said:
        wrong.append(f"run under Spillway ended with {code}")
    if not report:
        wrong.append("no report")
    if said and report:
        for key in ("launches", "allocations", "frees"):
            if report.get(key, 0) < said[key]:
                wrong.append(f"{report.get(key)} {key} of {said[key]} were seen")
        if report.get("wanted_peak_bytes", 0) < said["peak_bytes"]:
            wrong.append("the report's peak is below what was allocated")
    if used is not None and bare_used is not None and abs(used - bare_used) > SLACK_BYTES:
        wrong.append(f"the device holds {(used - bare_used) >> 20} MiB more than bare")
    result["wrong"] = wrong
    return result


def step(session):
    """cudaMalloc, cudaFree and launches of a runtime program, shared and static, counted against Spillway's report."""
    linkages = ["shared"] if session.simulated else ["shared", "static"]
    checks = [_check(session, linkage) for linkage in linkages]
    wrong = [f"{check['linkage']}: {text}" for check in checks for text in check["wrong"]]
    if wrong:
        return {"verdict": "failed", "summary": "; ".join(wrong), "checks": checks}
    seen = ", ".join(f"{c['linkage']}: {c['report']['launches']} launches, {c['report']['allocations']} allocations"
                     for c in checks)
    return {"verdict": "passed", "summary": seen, "checks": checks}

"""The steps, in the order in which they run. Each takes the session and returns verdict, summary and its data."""
import json
import os

from . import hooks, peers, pytorch

def _load(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def _suite(session, prefix, arguments, json_name, limit):
    """Runs one of the harness' programs and reads its JSON file."""
    path = session.result_file(json_name)
    output = session.call(prefix + arguments + [f"--json={path}"], limit)
    data = _load(path)
    if data is None:
        return {"verdict": "failed", "summary": output.why()}
    counts = {verdict: sum(case["verdict"] == verdict for case in data["cases"])
              for verdict in ("passed", "failed", "skipped")}
    summary = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    failures = {case["name"]: case["failures"] for case in data["cases"] if case["verdict"] == "failed"}
    return {"verdict": "passed" if output.code == 0 else "failed", "summary": summary, "failures": failures,
            "file": json_name}


def contract_bare(session):
    """The contract suite on the driver itself."""
    program = session.path("tests-bin", "contract_suite")
    return _suite(session, [program], ["--jobs=8", "--limit-seconds=15"], "contract_bare.json", 120)


# The driver refuses SYNC_MEMOPS for virtual memory. Our allocations disturb no capture, so they are allowed where a capture forbids
# the driver's.
KNOWN_DIFFERENCES = ["Pointer.SyncMemopsCanBeSet", "Capture.AllocatingInGlobalModeBreaksIt", "Capture.GlobalModeBindsOtherThreads"]


def contract_spillway(session):
    """The contract suite under libspillway.so: the same rules must hold."""
    program = session.path("tests-bin", "contract_suite")
    known = [f"--known={name}" for name in KNOWN_DIFFERENCES]
    return _suite(session, session.spillway("--quiet"), [program, "--jobs=8", "--limit-seconds=15", *known],
                  "contract_spillway.json", 120)


def probe(session):
    """docs/gpu, items 1 to 4, 7 and 8: figures. The item that may damage the device runs
    last."""
    program = session.path("tests-bin", "probe")
    return _suite(session, [program], ["--last=Item1", "--limit-seconds=25"], "probe.json", 150)


def _compare(session, name, command, budgets, limit, environment):
    """Bare, then under each budget: the same lines on standard output; reports and times side by
    side."""
    bare = session.call(command, limit, environment)
    runs = [{"budget": "bare", "seconds": round(bare.seconds, 2)}]
    if bare.code != 0:
        return {"verdict": "failed", "summary": f"bare run: {bare.why()}", "runs": runs}
    verdict, words = "passed", []
    for budget in budgets:
        report = session.path(f"{name}-report.json")
        if os.path.exists(report):
            os.unlink(report)
        share = ["--budget", budget] if budget != "100%" else []
        output = session.call(session.spillway("--quiet", "--report", report, *share) + command, limit, environment)
        run = {"budget": budget, "seconds": round(output.seconds, 2), "report": _load(report),
               "same_output": output.code == 0 and output.stdout == bare.stdout,
               "notes": output.stderr.strip().splitlines()[-1:]}
        if output.code != 0:
            run["why"] = output.why()
        runs.append(run)
        if not run["same_output"] or not run["report"]:
            verdict = "failed"
        words.append(f"{budget} {'same' if run['same_output'] else 'DIFFERS'}")
    lines = len(bare.stdout.splitlines())
    return {"verdict": verdict, "summary": f"{lines} lines; " + ", ".join(words), "runs": runs,
            "bare_notes": bare.stderr.strip().splitlines()[-1:], "last_line": bare.stdout.strip().splitlines()[-1:]}


def fingerprints(session):
    """What a fingerprint of device memory costs beside the memory's copy to the host, 1 MiB to 1 GiB; each against its
    definition."""
    quick = ["--quick"] if session.simulated else []
    output = session.call([session.path("tests-bin", "fingerprint_cost"), *quick], 60)
    rows = [" ".join(line.split()) for line in output.stdout.splitlines()]
    good = output.code == 0 and rows
    return {"verdict": "passed" if good else "failed", "summary": rows[-3] if good else output.why(), "rows": rows}


def digits(session):
    """digits_cnn bare and at 100, 50 and 25 % of its peak: line for line the same."""
    return _compare(session, "digits", [session.path("workloads", "digits_cnn")], ["100%", "50%peak", "25%peak"], 90, {})


ALL = [
    ("hooks", hooks.step),
    ("digits", digits),
    ("fingerprints", fingerprints),
    ("contract_bare", contract_bare),
    ("contract_spillway", contract_spillway),
    ("pytorch", pytorch.step),
    *peers.ALL,
    ("probe", probe),
]

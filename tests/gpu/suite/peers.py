"""Cases that users of similar layers reported and that need a real GPU (T21 to T26 of that list)."""
import json
import os
import shutil
import subprocess
import sys

from .hooks import SLACK_BYTES, device_used_bytes
from .session import ROOT

PROGRAMS = os.path.join(ROOT, "tests", "gpu", "programs")
LIMIT_S = 90


def _skipped(why):
    return {"verdict": "skipped", "summary": why}


def _torch_missing(session, devices=1):
    if session.simulated:
        return "PyTorch's own runtime needs a real driver"
    count = subprocess.run([sys.executable, "-c", "import torch; print(torch.cuda.device_count())"],
                           capture_output=True, text=True)
    if count.returncode != 0:
        return "PyTorch is not installed"
    return f"needs {devices} GPUs" if int(count.stdout) < devices else None


def _same_under_budget(session, check, budget, environment=None):
    """Runs the check bare and under the budget; returns the difference, or nothing."""
    command = [sys.executable, os.path.join(PROGRAMS, "torch_peers.py"), check]
    environment = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8", **(environment or {})}
    bare = session.call(command, LIMIT_S, environment)
    if bare.code != 0:
        return f"bare: {bare.why()}"
    below = session.call(session.spillway("--quiet", "--no-framework-env", "--budget", budget) + command, LIMIT_S,
                         environment)
    if below.code != 0:
        return f"under {budget}: {below.why()}"
    return None if below.stdout == bare.stdout else f"under {budget} it prints something else"


def _torch_step(session, name, runs, devices=1):
    missing = _torch_missing(session, devices)
    if missing:
        return _skipped(missing)
    wrong = [f"{label}: {text}" for label, check, budget, environment in runs
             if (text := _same_under_budget(session, check, budget, environment))]
    return {"verdict": "failed" if wrong else "passed", "summary": "; ".join(wrong) or f"{name}: the same"}


def t21(session):
    """T21: PyTorch beyond the budget gets an error, flushes its cache and continues; its memory
    figures are consistent."""
    return _torch_step(session, "refusals", [("over budget", "over_budget", "2GiB", {})])


def t22(session):
    """T22: PyTorch's allocators: expandable segments, cudaMallocAsync, none."""
    runs = [(label, "allocator", "256MiB", environment) for label, environment in (
        ("expandable segments", {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}),
        ("cudaMallocAsync", {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}),
        ("no caching", {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}))]
    return _torch_step(session, "allocators", runs)


def t23(session):
    """T23: NCCL all-reduce between two processes, captured in a graph too; peer attributes unchanged."""
    return _torch_step(session, "all-reduce", [("NCCL", "all_reduce", "2GiB", {})], devices=2)


def t24(session):
    """T24: cuDNN's convolutions near the budget find an execution plan."""
    return _torch_step(session, "convolutions", [("cuDNN", "convolution", "1GiB", {})])


def _holding(session, prefix, command):
    """Starts a command that prints a line and waits; returns its answer, and the device's held
    memory meanwhile."""
    before = device_used_bytes(session)
    process = session.start([*prefix, *command])
    line = process.stdout.readline().strip()
    during = device_used_bytes(session)
    process.communicate(input="\n", timeout=LIMIT_S)
    grown = None if before is None or during is None else during - before
    return line, grown


def _report(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}


def t25(session):
    """T25: NVML's figures for a job under Spillway and bare differ by little, and Spillway's own has what it allocates."""
    if session.simulated:
        return _skipped("what NVML says of a real process")
    return _gap(session, [session.path("tests-bin", "runtime_program_shared"), "--hold"], "gap", wanted_bytes=616 << 20)


def t26(session):
    """T26: allocations of a plug-in loaded with RTLD_DEEPBIND are counted, or show as a gap."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return _skipped("no C compiler")
    plugin = session.path("deepbind_plugin.so")
    built = session.call([compiler, "-shared", "-fPIC", "-o", plugin, os.path.join(PROGRAMS, "deepbind_plugin.c"),
                          "-ldl"], LIMIT_S)
    if built.code != 0:
        return {"verdict": "failed", "summary": built.why()}
    command = [sys.executable, os.path.join(PROGRAMS, "deepbind.py"), plugin, str(512 << 20)]
    return _gap(session, command, "deepbind", wanted_bytes=512 << 20)


def _gap(session, command, name, wanted_bytes=0):
    """What the device holds for the program, under Spillway and bare: the context of either takes as much."""
    path = session.path(f"{name}-report.json")
    if os.path.exists(path):
        os.unlink(path)
    _, bare_grown = _holding(session, [], command)
    line, grown = _holding(session, session.spillway("--quiet", "--report", path), command)
    held = _report(path).get("resident_peak_bytes", 0)
    gap = None if grown is None or bare_grown is None else grown - bare_grown
    seen = held >= wanted_bytes
    detected = gap is not None and gap > SLACK_BYTES
    verdict = "passed" if seen and not detected else "failed"
    text = f"{line[:40]}; Spillway held {held >> 20} MiB" + ("" if gap is None else f", the device {gap >> 20} MiB more than bare")
    return {"verdict": verdict, "summary": text, "held_bytes": held, "gap_bytes": gap}


ALL = [("T21", t21), ("T22", t22), ("T23", t23), ("T24", t24), ("T25", t25), ("T26", t26)]

"""What Spillway adds to the start of a PyTorch program: `import torch` and a first kernel, bare and under Spillway in turn."""
import dataclasses
import os
import statistics
import subprocess

from main_job import print_table
from pytorch_parts.runs import RunFailed

PROGRAM = "import torch; print(torch.ones(1, device='cuda').add_(1).item())"
ALLOWED_SHARE, ALLOWED_MS = 0.05, 100


@dataclasses.dataclass(frozen=True)
class Start:
    wall_ms: float
    processor_ms: float  # of all its threads and processes: other programs on the machine hardly change it


def measure(command, environment):
    """One process and its children; the clocks are those of the kernel's own accounts."""
    begin = os.times().elapsed
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    errors = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RunFailed(f"start-up: exit code {process.returncode}\n{errors[-2000:]}")
    return Start((os.times().elapsed - begin) * 1e3, (used.ru_utime + used.ru_stime) * 1e3)


def added(bare, under):
    """What the fastest start under Spillway takes more than the fastest bare one, and whether that is little enough."""
    fastest = min(start.processor_ms for start in bare)
    more_ms = min(start.processor_ms for start in under) - fastest
    return more_ms, more_ms < max(ALLOWED_SHARE * fastest, ALLOWED_MS)


def row(name, starts):
    return [name] + [f"{pick(getattr(start, clock) for start in starts):.0f}" for clock in ("processor_ms", "wall_ms")
                     for pick in (min, statistics.median)]


def run(build_dir, profile, python, settings, rounds):
    launcher = [str(build_dir / "bin" / "spillway"), "run", f"--simulate={profile}", "--quiet"]
    environment = dict(os.environ, **settings)
    starts = {"bare": [], "under Spillway": []}
    options = {"bare": ["--off"], "under Spillway": []}
    for number in range(rounds + 1):
        for name, found in starts.items():
            start = measure([*launcher, *options[name], "--", str(python), "-c", PROGRAM], environment)
            if number > 0:  # the first only fills the page cache
                found.append(start)
    print(f"\n`{PROGRAM}`, {rounds} starts each, in turn (ms)\n")
    print_table(["", "processor, least", "median", "wall, least", "median"], [row(name, found) for name, found in starts.items()])
    more_ms, is_little = added(*starts.values())
    print(f"\nSpillway adds {more_ms:.0f} ms of processor time ({'less' if is_little else 'MORE'} than the {ALLOWED_MS} ms or "
          f"{ALLOWED_SHARE:.0%} allowed)")
    return is_little

"""Runs a program on the simulated GPU, bare or under Spillway, each time in a new folder with the same files."""
import dataclasses
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

from .programs import HEADERS, ROOT, SOURCES

MOST_INPUT_BYTES = 256 << 20
SMALLEST = re.compile(r"kSmallestBudgetBytes\s*=\s*(\d+)ULL\s*<<\s*(\d+)")


class CannotRun(Exception):
    """The machine or the options are at fault, not the program."""


def smallest_budget_bytes():
    """What `spillway run --budget` accepts at least; its source is the only place that knows."""
    match = SMALLEST.search((ROOT / "cli" / "launch_checks.h").read_text(encoding="utf-8"))
    return int(match[1]) << int(match[2])


@dataclasses.dataclass
class Run:
    label: str
    budget_bytes: int | None = None
    exit_code: int | None = None  # negative: the signal that ended it; None: it did not end in time
    output: bytes = b""
    errors: str = ""
    files: dict = dataclasses.field(default_factory=dict)  # written by the program: name from its folder -> bytes
    report: dict = dataclasses.field(default_factory=dict)  # Spillway's
    statistics: dict = dataclasses.field(default_factory=dict)  # the simulator's
    pid: int = 0

    def ending(self):
        if self.exit_code is None:
            return "did not end in time"
        if self.exit_code < 0:
            return f"ended by {signal.Signals(-self.exit_code).name}"
        return f"exit code {self.exit_code}"

    def last_words(self):
        """The last line that says why a run failed."""
        said = [line for line in (self.errors + "\n" + self.output.decode(errors="replace")).splitlines() if line.strip()]
        named = [line for line in said if re.search(r"error|fail|cannot|not supported|not found|waiv", line, re.I)]
        return (named or said or [""])[-1 if not named else 0].strip()

    def held_bytes(self):
        return self.statistics.get("device_bytes_peak", 0)

    def held_of_one_device(self):
        return max((device["bytes_peak"] for device in self.statistics.get("devices", [])), default=0)


def input_files(program, given):
    """What is copied into the folder where the program runs: {name in that folder: file}."""
    if given:
        folders = [pathlib.Path(name).resolve() for name in given]
    else:
        folders = [program.folder] if len(program.sources) > 0 and not program.binary else []
    found = {}
    for folder in folders:
        files = [folder] if folder.is_file() else [path for path in sorted(folder.rglob("*")) if path.is_file()]
        base = folder.parent if folder.is_file() else folder
        found |= {str(path.relative_to(base)): path for path in files
                  if given or (path.suffix not in SOURCES + HEADERS and not path.relative_to(base).parts[0].startswith("."))}
    size_bytes = sum(path.stat().st_size for path in found.values())
    if size_bytes > MOST_INPUT_BYTES and not given:
        raise CannotRun(f"{program.folder} holds {size_bytes >> 20} MiB beside its sources: name the files that the program "
                        "needs with --files")
    return found


class Runner:
    def __init__(self, options, build_dir):
        self.options, self.spillway = options, build_dir / "bin" / "spillway"
        if not self.spillway.is_file():
            raise CannotRun(f"{self.spillway} is not there: build Spillway first (./try does), or name its build folder with --build")

    def execute(self, run, program, binary, arguments, folder, inputs):
        """Fills in `run`. `folder` is this run's own, and removed afterwards."""
        place, report, statistics = folder / "files", folder / "report.json", folder / "statistics.json"
        for name, path in inputs.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, place / name)
        place.mkdir(parents=True, exist_ok=True)
        before = contents(place)
        command = [str(self.spillway), "run", f"--simulate={self.options.profile}", "--quiet"]
        command += ["--off"] if run.label.startswith("bare") else ["--report", str(report)]
        command += ["--budget", str(run.budget_bytes)] if run.budget_bytes else []
        environment = dict(os.environ, XDG_STATE_HOME=str(folder / "state"), SPILLWAY_SIM_STATS=str(statistics),
                           SPILLWAY_SIM_DEVICES=str(self.options.devices))
        self.await_end(run, [*command, "--", str(binary), *arguments], environment, place)
        run.files = {name: content for name, content in contents(place).items() if before.get(name) != content}
        run.report, run.statistics = read_json(report), read_json(statistics)
        shutil.rmtree(folder, ignore_errors=True)

    def await_end(self, run, command, environment, place):
        with subprocess.Popen(command, env=environment, cwd=place, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, start_new_session=True) as process:
            run.pid = process.pid  # `run` becomes the command
            try:
                run.output, errors = process.communicate(timeout=self.options.timeout)
                run.exit_code = process.returncode
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                run.output, errors = process.communicate()
            run.errors = errors.decode(errors="replace")


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def read_json(path):
    """Empty where the process ended without writing it."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}

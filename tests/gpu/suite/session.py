"""One run of the GPU suite: its paths, how it starts commands, and the result of each step."""
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import traceback

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", ".."))


class Output:
    """The result of a command; `code` is None when it exceeded its limit."""

    def __init__(self, code, stdout, stderr, seconds):
        self.code, self.stdout, self.stderr, self.seconds = code, stdout, stderr, seconds

    def why(self):
        if self.code is None:
            return f"did not end within its limit ({self.seconds:.0f} s)"
        lines = (self.stderr.strip() or self.stdout.strip()).splitlines()
        return f"exit code {self.code}" + (f": {lines[-1][:160]}" if lines else "")


class Session:
    def __init__(self, options):
        self.simulated = bool(options.simulate)
        self.dry = options.dry_run
        self.build = os.path.abspath(options.simulate or options.build or os.path.join(ROOT, "build-gpu"))
        default = os.path.join(self.build, "results-simulated" if self.simulated else "results")
        self.results = os.environ.get("OUT") or default
        os.makedirs(self.results, exist_ok=True)
        self.deadline = time.monotonic() + (options.limit_seconds or (3600 if self.dry else 530))
        self.log = open(os.path.join(self.results, "log.txt"), "w", encoding="utf-8")
        self.steps = []
        self.facts = {}
        # Python's site-packages may be unwritable and hold no compiled modules: then each import compiles PyTorch anew.
        self.environment = dict(os.environ, PYTHONPYCACHEPREFIX=os.path.join(self.build, "pycache"))
        if self.simulated:
            self.environment.update(SPILLWAY_SIM_PROFILE="h200",
                                    LD_LIBRARY_PATH=os.path.join(self.build, "simulator"))

    def say(self, text):
        print(text, flush=True)
        self.log.write(text + "\n")
        self.log.flush()

    def path(self, *parts):
        return os.path.join(self.build, *parts)

    def result_file(self, name):
        return os.path.join(self.results, name)

    def spillway(self, *arguments):
        simulate = ["--simulate=h200"] if self.simulated else []
        return [self.path("bin", "spillway"), "run", *simulate, *arguments, "--"]

    def start(self, command, **settings):
        settings.setdefault("env", self.environment)
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, errors="replace", start_new_session=True, cwd=ROOT, **settings)

    def call(self, command, limit_seconds, extra_environment=None):
        """Runs a command to its end or its limit; all its output goes to the log."""
        limit = max(1.0, min(limit_seconds, self.deadline - time.monotonic()))
        begin = time.monotonic()
        try:
            process = self.start(command, env={**self.environment, **(extra_environment or {})})
        except OSError as error:
            return Output(127, "", str(error), 0.0)
        try:
            stdout, stderr = process.communicate(input="", timeout=limit)
            code = process.returncode
        except subprocess.TimeoutExpired:
            self._log_stacks(process.pid)
            os.killpg(process.pid, signal.SIGKILL)
            stdout, stderr = process.communicate()
            code = None
        output = Output(code, stdout, stderr, time.monotonic() - begin)
        self.log.write(f"\n$ {' '.join(command)}\n{stdout}{stderr}[{code}, {output.seconds:.1f} s]\n")
        self.log.flush()
        return output

    def _log_stacks(self, group):
        """Where a command that exceeded its limit stood: the stacks of its last process, where a debugger is installed."""
        debugger = shutil.which("gdb") or shutil.which("cuda-gdb")
        members = subprocess.run(["pgrep", "-g", str(group)], capture_output=True, text=True, check=False).stdout.split()
        if not debugger or not members:
            return
        command = [debugger, "--batch", "-p", members[-1], "-ex", "thread apply all backtrace 16"]
        try:
            stacks = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=25, check=False).stdout
        except (OSError, subprocess.TimeoutExpired) as error:
            stacks = f"{error}\n"
        self.log.write(stacks)

    def run_step(self, name, step):
        """A step returns a dictionary with at least `verdict` (passed, failed, skipped) and `summary`."""
        begin = time.monotonic()
        if time.monotonic() > self.deadline:
            outcome = {"verdict": "skipped", "summary": "no time left"}
        else:
            try:
                outcome = step(self)
            except Exception as error:  # a broken step must not end the later ones
                self.log.write(traceback.format_exc())
                outcome = {"verdict": "failed", "summary": f"{type(error).__name__}: {error}"}
        outcome = {"name": name, "seconds": round(time.monotonic() - begin, 1), **outcome}
        self.steps.append(outcome)
        self.say(f"{outcome['verdict']:8} {name} ({outcome['seconds']} s): {outcome['summary']}")

    def all_passed(self):
        return all(step["verdict"] != "failed" for step in self.steps)

    def write(self):
        record = {"schema": 1, "simulated": self.simulated, "dry_run": self.dry, "machine": self.facts,
                  "command": " ".join(sys.argv), "steps": self.steps}
        with open(self.result_file("results.json"), "w", encoding="utf-8") as file:
            json.dump(record, file, indent=1)

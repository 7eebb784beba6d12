"""One run of the trainer convnet under the preload library, at real size on a simulated card.

For reach.py and workspaces.py, on their main thread.
"""
import json
import os
import re
import subprocess
import tempfile

GIB = 1 << 30
STEP = re.compile(r"^step \d+ took ([0-9.]+) ms$", re.M)
STEPS_UNTIL_PLANNED = 14  # a plan is followed after some ten


def run(build, profile, budget_bytes, model, image, batch, steps, options=""):
    """The simulator's statistics, with `report`, `step_ms` (of each step but the first) and
    `host_gib` (the most memory that the process had of this machine); or only `error`. Without a
    budget the run is bare and has no report."""
    with tempfile.TemporaryDirectory() as folder:
        statistics, report, errors = (os.path.join(folder, name) for name in ("statistics", "report", "errors"))
        simulator = os.path.join(build, "simulator")
        environment = dict(os.environ, LD_LIBRARY_PATH=simulator, SPILLWAY_SIM_PROFILE=profile, SPILLWAY_SIM_COMPUTE="tags",
                           SPILLWAY_SIM_STATS=statistics)
        environment.pop("LD_PRELOAD", None)
        if budget_bytes:
            environment.update(SPILLWAY_DRIVER=os.path.join(simulator, "libcuda.so.1"), SPILLWAY_HOST_LIMIT=str(1 << 40),
                               SPILLWAY_BUDGET=str(budget_bytes), SPILLWAY_LEARN="wait" if steps >= STEPS_UNTIL_PLANNED else "off",
                               SPILLWAY_REPORT=report, LD_PRELOAD=os.path.join(build, "lib", "libspillway.so"))
        command = [os.path.join(build, "workloads", "convnet"), f"--model={model}", f"--image={image}", f"--batch={batch}",
                   f"--images={batch}", f"--steps={steps}", "--times", *options.split()]
        with open(errors, "w", encoding="utf-8") as file:
            process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=file)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        with open(errors, encoding="utf-8") as file:
            text = file.read()
        if process.returncode != 0:
            return {"error": text.strip().splitlines()[-1] if text.strip() else f"exit code {process.returncode}"}
        with open(statistics, encoding="utf-8") as file:
            found = json.load(file)
        if budget_bytes:
            with open(report, encoding="utf-8") as file:
                found["report"] = json.load(file)
        found["step_ms"] = [float(each) for each in STEP.findall(text)]
        found["host_gib"] = usage.ru_maxrss * 1024 / GIB
        return found


def breaks_a_rule(found, budget_bytes):
    return found["device_bytes_peak"] > budget_bytes or bool(found["violations"]) or found["illegal_accesses"] > 0

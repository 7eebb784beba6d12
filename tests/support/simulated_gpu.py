"""Runs programs on the simulated GPU, bare or under a preload library, and reads the simulator's books afterwards."""

import dataclasses
import json
import os
import pathlib
import subprocess
import tempfile


@dataclasses.dataclass
class Run:
    exit_code: int | None  # negative: ended by that signal; None: took too long and was ended
    output: str
    errors: str
    books: dict  # what the simulated driver counted; empty when the program did not end by itself


def environment(build, library=None, budget_bytes=None, profile="h200"):
    """The environment in which a program meets the simulated driver, below `library` where there is one."""
    simulator = pathlib.Path(build) / "simulator"
    result = {name: value for name, value in os.environ.items() if not name.startswith("SPILLWAY_")}
    result["LD_LIBRARY_PATH"] = str(simulator)
    result["SPILLWAY_SIM_PROFILE"] = profile
    if library is not None:
        result["LD_PRELOAD"] = str(library)
        result["SPILLWAY_DRIVER"] = str(simulator / "libcuda.so.1")
    if budget_bytes is not None:
        result["SPILLWAY_BUDGET"] = str(budget_bytes)
    return result


def run(command, env, timeout_s):
    """Runs `command` to its end, or ends it after `timeout_s`."""
    with tempfile.TemporaryDirectory(prefix="spillway-test-") as folder:
        books_file = pathlib.Path(folder) / "books.json"
        settings = dict(env, SPILLWAY_SIM_STATS=str(books_file))
        process = subprocess.Popen([str(part) for part in command], env=settings, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, errors="replace")
        try:
            output, errors = process.communicate(timeout=timeout_s)
            exit_code = process.returncode
        except subprocess.TimeoutExpired:
            process.kill()
            output, errors = process.communicate()
            exit_code = None
        books = json.loads(books_file.read_text()) if books_file.exists() else {}
        return Run(exit_code, output, errors, books)

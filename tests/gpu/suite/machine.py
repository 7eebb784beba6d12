"""What machine this is, and keeping its GPU initialised between our short-lived processes."""
import contextlib
import datetime
import subprocess
import sys


def _first_line(command):
    try:
        output = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = output.stdout.strip().splitlines()
    return lines[-1].strip() if output.returncode == 0 and lines else None


def facts(session):
    if session.simulated:
        gpu, driver, torch = "simulated h200", "simulated", None
    else:
        gpu = _first_line(["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader"])
        driver = _first_line(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"])
        torch = _first_line([sys.executable, "-c", "import torch; print(torch.__version__)"])
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "gpu": gpu or "none",
        "driver": driver or "none",
        "nvcc": _first_line(["nvcc", "--version"]) or "none",
        "torch": torch or "none",
        "kernel": _first_line(["uname", "-r"]),
        "commit": _first_line(["git", "rev-parse", "--short", "HEAD"]) or "unknown",
    }


_HOLD_A_CONTEXT = """
import ctypes, sys
driver = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
if driver.cuInit(0) == 0: driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
print("ready", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def awake(session):
    """Keeps the GPU initialised: an unused GPU may shut down and restart for each of our processes."""
    if session.simulated:
        yield
        return
    holder = session.start([sys.executable, "-c", _HOLD_A_CONTEXT])
    holder.stdout.readline()
    try:
        yield
    finally:
        holder.stdin.close()
        try:
            holder.wait(timeout=10)
        except subprocess.TimeoutExpired:
            holder.kill()

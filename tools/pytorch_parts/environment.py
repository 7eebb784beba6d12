"""The virtual environment with PyTorch: its packages, and stand-ins for the CUDA libraries that it is linked with but never needs.

Packages are downloaded once into a cache outside the checkout, which serves the next clone.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from pytorch_parts import stand_ins


class CannotMake(Exception):
    pass


class CannotDownload(CannotMake):
    pass


def cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "spillway" / "wheels"


class Environment:
    def __init__(self, folder, requirements):
        self.folder = folder
        self.requirements = requirements
        self.python = folder / "venv" / "bin" / "python"
        self.stand_ins = folder / "stand_ins"
        self._mark = folder / "made_of.txt"  # written last: what this environment holds
        self._deadline = None

    def _made_of(self):
        return f"# {sys.version.split()[0]} in {self.folder}\n" + self.requirements.read_text(encoding="utf-8")

    def is_made(self):
        return self._mark.is_file() and self._mark.read_text(encoding="utf-8") == self._made_of()

    def make(self, simulated, patience_s=None):
        """`simulated` is the folder of the simulated libraries. subprocess.TimeoutExpired if the packages take longer than `patience_s`."""
        if self.is_made():
            return
        self._deadline = time.monotonic() + patience_s if patience_s else None
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        print("  virtual environment ...", flush=True)
        self._run([sys.executable, "-m", "venv", str(self.folder / "venv")], "Python's venv module is missing: install python3-venv")
        self._install()
        print("  stand-ins for unused CUDA libraries ...", end="", flush=True)
        made = stand_ins.make_all(sorted(self._packages("torch/lib").glob("*.so")), self._found(simulated), self.stand_ins)
        print(" " + ", ".join(f"{soname} ({len(symbols)} functions)" for soname, symbols in made.items()), flush=True)
        self._mark.write_text(self._made_of(), encoding="utf-8")

    def _run(self, command, remedy, failure=CannotMake):
        left_s = max(self._deadline - time.monotonic(), 0) if self._deadline else None
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=left_s)
        if done.returncode != 0:
            raise failure(f"{' '.join(command[:4])} ... failed: {remedy}\n{(done.stdout + done.stderr)[-1500:]}")

    def _pip(self, *arguments):
        return [str(self.python), "-m", "pip", "--disable-pip-version-check", *arguments, "--no-deps", "-r", str(self.requirements)]

    def _install(self):
        cache = cache_folder()
        cache.mkdir(parents=True, exist_ok=True)
        from_cache = self._pip("install", "--no-index", "--find-links", str(cache))
        if subprocess.run(from_cache, capture_output=True, check=False).returncode == 0:
            print(f"  packages from {cache}", flush=True)
            return
        print(f"  packages: downloading some 700 MB to {cache} ...", flush=True)
        with tempfile.TemporaryDirectory(dir=cache, prefix="incomplete-") as incomplete:
            self._run(self._pip("download", "--find-links", str(cache), "-d", incomplete),
                      "the package index cannot be reached, or lacks a pinned version", CannotDownload)
            for wheel in pathlib.Path(incomplete).iterdir():  # whole by now
                wheel.replace(cache / wheel.name)
        print("  packages: installing ...", flush=True)
        self._run(from_cache, "the downloaded packages cannot be installed")

    def _packages(self, part):
        return next((self.folder / "venv" / "lib").glob("python3*/site-packages")) / part

    def _found(self, simulated):
        ldconfig = shutil.which("ldconfig", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") or "ldconfig"
        system = subprocess.run([ldconfig, "-p"], check=True, capture_output=True, text=True).stdout.splitlines()
        # CUDA libraries that this machine happens to have are of any release.
        names = {line.split()[0] for line in system[1:] if not line.lstrip().startswith(("libcu", "libnccl", "libnv"))}
        names.update(path.name for path in simulated.glob("*.so*"))
        names.update(path.name for path in self._packages("nvidia").glob("*/lib/*.so*"))
        return names | {"ld-linux-x86-64.so.2"}

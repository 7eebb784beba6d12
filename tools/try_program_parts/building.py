"""Builds a program and its kernels for the simulated GPU."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

from . import lacks
from .programs import INCLUDE, text_of

# Header -> the library that it needs. Headers of the program and of the user's include folders are read too.
LIBRARY_OF_HEADER = {"cublas": "cublas", "cublas_v2": "cublas", "cublasLt": "cublasLt", "cublasXt": "cublas",
                     "cudnn": "cudnn", "cufft": "cufft", "cufftXt": "cufft", "curand": "curand", "cusparse": "cusparse", "cusparse_v2": "cusparse",
                     "cusolverDn": "cusolver", "cusolverSp": "cusolver", "cusolverRf": "cusolver", "nvrtc": "nvrtc"}
# A kernel, or a variable of the device; functions alone need no plug-in.
KERNEL_OR_VARIABLE = re.compile(r"\b__global__\b|\b__(?:device|constant|managed)__\b[^;(){}]*[;=\[]")
THRUST = re.compile(r"#\s*include\s*<thrust/")
KERNELS_LAUNCH = "requires separate compilation mode"  # what nvcc says of launches in device code
MODULE_FILE = re.compile(r"(\w+?)(?:64)?\.(fatbin|ptx|cubin)\b")
SIMULATED = {"cublas": "libcublas.so.13", "cudnn": "libcudnn.so.9"}  # for simkernels --host
LONGEST_BUILD_S = 600


class NotBuilt(Exception):
    """With the `lacks` that say why."""

    def __init__(self, found):
        super().__init__("; ".join(lack.line() for lack in found))
        self.lacks = found


def find_nvcc():
    at = shutil.which("nvcc") or os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin", "nvcc")
    return at if os.access(at, os.X_OK) else None


class Builder:
    """Knows the user's options and the compilers; holds the executor of kernels, compiled once."""

    def __init__(self, options, work):
        self.options, self.work = options, work
        self.nvcc = None if options.host else find_nvcc()
        self.simkernels = pathlib.Path(__file__).resolve().parents[1] / "simkernels"
        self.environment = dict(os.environ)
        if shutil.which("ccache") and "ccache" not in self.environment.get("CXX", ""):
            self.environment["CXX"] = "ccache " + self.environment.get("CXX", "g++")
        self.executor = work / "executor"

    def prepare(self):
        self.run([sys.executable, self.simkernels, "--make-executor", self.executor], "the kernels' executor")

    def run(self, command, what):
        command = [str(part) for part in command]
        if self.options.verbose:
            print(" ".join(command), file=sys.stderr)
        try:
            ended = subprocess.run(command, env=self.environment, capture_output=True, text=True, errors="replace",
                                   stdin=subprocess.DEVNULL, timeout=LONGEST_BUILD_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as problem:
            raise NotBuilt([lacks.Lack(f"{what}: {problem}", by=lacks.MACHINE)]) from problem
        return ended.returncode, ended.stderr + ended.stdout

    def flags(self, program):
        folders = [*program.include_folders, *self.options.include]
        return [f"-I{folder}" for folder in folders], [f"-D{name}" for name in self.options.define]

    def files_of(self, program):
        """The sources, and the headers that they include from the program's and the user's folders."""
        folders = [pathlib.Path(folder) for folder in [*program.include_folders, *self.options.include]]
        found, waiting = [], list(program.sources)
        while waiting:
            path = waiting.pop()
            found.append(path)
            places = [folder / name for name in INCLUDE.findall(text_of(path)) for folder in [path.parent, *folders]]
            waiting += {place.resolve() for place in places if place.is_file()} - set(found) - set(waiting)
        return found

    def libraries(self, program):
        headers = {pathlib.Path(name).stem for path in self.files_of(program) for name in INCLUDE.findall(text_of(path))}
        return sorted({LIBRARY_OF_HEADER[name] for name in headers if name in LIBRARY_OF_HEADER}) + self.options.library

    def needs_plugin(self, program):
        return bool(program.cuda_sources) and any(KERNEL_OR_VARIABLE.search(text_of(path)) for path in self.files_of(program))

    def make(self, program, folder):
        """The program's path; raises NotBuilt. Files that it loads (modules) come into folder/modules."""
        folder.mkdir(parents=True, exist_ok=True)
        if program.binary:
            return self.take_binary(program, folder)
        output = folder / program.name.rsplit("/", maxsplit=1)[-1]
        if self.nvcc and not self.uses_thrust(program):
            self.make_with_nvcc(program, output)
            self.make_modules(program, folder / "modules")
        else:
            self.make_for_host(program, output)
        return output

    def take_binary(self, program, folder):
        """Kernels beside the binary serve; kernels from given sources are compiled into this folder."""
        if not program.cuda_sources:
            return program.binary
        output = folder / program.binary.name
        shutil.copy2(program.binary, output)
        self.make_plugin(program, output)
        return output

    def make_with_nvcc(self, program, output):
        folders, defines = self.flags(program)
        libraries = [f"-l{name}" for name in ["cuda", *self.libraries(program)]]
        openmp = ["-Xcompiler", "-fopenmp"] if self.uses_openmp(program) else []
        code, said = self.run([self.nvcc, f"-std={self.options.std}", "-O2", "-w", "-cudart", "shared", "--extended-lambda",
                               *openmp, *folders, *defines, *self.options.nvcc, *program.sources, "-o", output, *libraries],
                              "nvcc")
        if code and KERNELS_LAUNCH in said:  # nvcc would link NVIDIA's device library
            self.make_for_host(program, output)
            return
        if code:
            raise NotBuilt(lacks.from_compiler(program, said, lacks.MACHINE))
        if self.needs_plugin(program):
            self.make_plugin(program, output)

    def uses_thrust(self, program):
        """Whether the program is built by g++ alone: as nvcc compiles Thrust, it launches kernels that no source names."""
        return any(THRUST.search(text_of(path)) for path in self.files_of(program))

    def uses_openmp(self, program):
        return any("omp.h" in text_of(source) for source in program.sources)

    def make_plugin(self, program, output):
        folders, defines = self.flags(program)
        self.call_simkernels(program, [*folders, *defines, *program.cuda_sources, "-o", f"{output}.kernels.so"])

    def make_for_host(self, program, output):
        folders, defines = self.flags(program)
        libraries = [SIMULATED.get(name, f"lib{name}.so") for name in self.libraries(program)]
        self.call_simkernels(program, ["--host", *folders, *defines, *program.sources, "-o", output, "--runtime",
                                       self.options.build / "simulator", *(f"--library={name}" for name in libraries)])

    def call_simkernels(self, program, arguments):
        code, said = self.run([sys.executable, self.simkernels, *arguments, "--executor", self.executor], "simkernels")
        if code:
            raise NotBuilt(lacks.from_compiler(program, said, lacks.SIMULATOR))

    def make_modules(self, program, folder):
        """Modules that the program loads by file name, where one of its .cu files has that name."""
        by_stem = {source.stem: source for source in program.cuda_sources}
        named = {(match[1], match[2], match[0]) for source in program.sources for match in MODULE_FILE.finditer(text_of(source))}
        for stem, kind, name in sorted(named):
            if stem in by_stem:
                folder.mkdir(exist_ok=True)
                folders, defines = self.flags(program)
                self.run([self.nvcc, f"-{kind}", "-w", *folders, *defines, by_stem[stem], "-o", folder / name], "nvcc")

"""Compiles rewritten sources and the executor into a plug-in or a program."""
import os
import re
import shlex
import subprocess

from . import assembly
from .rewrite import ROOT, Source, path_from_root

KERNELS = os.path.join(ROOT, "simulator", "kernels")
EXECUTOR = ["block_executor.cpp", "device_clock.cpp", "fiber.cpp", "grid_launch.cpp", "plugin_image.cpp", "shared_memory.cpp"]
EXECUTOR_STANDARD = "c++20"
LEAST_STANDARD = 17
REGISTRATION = ["program_registration.cpp"]  # only in programs


class CompilerFailed(Exception):
    pass


def toolkit_include(cuda):
    """The folder of cuda_runtime.h."""
    roots = [cuda] if cuda else [os.environ.get("CUDA_HOME", ""), "/usr/local/cuda", "/usr/local/cuda/targets/x86_64-linux"]
    for root in roots:
        for folder in (os.path.join(root, "include"), root):
            if root and os.path.isfile(os.path.join(folder, "cuda_runtime.h")):
                return folder
    raise CompilerFailed("the CUDA toolkit's headers were not found: pass --cuda ROOT or set CUDA_HOME "
                         "(NVIDIA's package cuda-cudart-dev-13-0 has them)")


def machine_flags():
    """AVX2 if the machine has it. Never implicit fused multiply-add: results would differ."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            flags = re.search(r"^flags\s*:(.*)$", file.read(), re.M)
    except OSError:
        flags = None
    has = set(flags.group(1).split()) if flags else set()
    return ["-march=x86-64-v3"] if {"avx2", "fma", "bmi2", "movbe"} <= has else []


def standard(wanted):
    """The program's standard, or the least that the simulator's headers need."""
    match = re.fullmatch(r"(c|gnu)\+\+(\d\d)", wanted)
    if match and (match.group(2) in ("98", "03") or int(match.group(2)) < LEAST_STANDARD):
        return f"{match.group(1)}++{LEAST_STANDARD}"
    return wanted


class Build:
    def __init__(self, options, work):
        self.options, self.work = options, work
        self.compiler = shlex.split(os.environ.get("CXX", "g++"))
        include = toolkit_include(options.cuda)
        self.flags = [f"-std={standard(options.std)}", f"-O{options.optimize}", *machine_flags(), "-ffp-contract=off",
                      "-fno-math-errno", "-fno-trapping-math", "-fPIC", "-fvisibility=hidden", "-fno-gnu-unique", "-fno-ipa-icf",
                      "-ffunction-sections", "-fdata-sections", "-Wno-unknown-pragmas", "-Wno-attributes",
                      f"-ffile-prefix-map={ROOT}=.", f"-I{KERNELS}/device", f"-I{ROOT}",
                      f'-DSPILLWAY_TOOLKIT_CUDA_H="{include}/cuda.h"']
        self.flags += ["-g1"] if options.debug else []
        self.flags += ["-DCUDA_API_PER_THREAD_DEFAULT_STREAM=1"] if options.default_stream == "per-thread" else []
        self.flags += [f"-D{name}" for name in options.define]
        self.flags += [f"-I{folder}" for folder in options.include]
        self.flags += ["-isystem", include, "-isystem", os.path.join(include, "cccl")]
        self.read = set()

    def run(self, command):
        if self.options.verbose:
            print(shlex.join(command), flush=True)
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode:
            raise CompilerFailed(result.stderr.strip() or f"{command[0]} failed")
        if result.stderr and self.options.verbose:
            print(result.stderr, end="")

    def path(self, name):
        return os.path.join(self.work, name)

    def assembled(self, source, serial):
        """Compiles one .cu file; returns the assembler's input."""
        rewritten, assembled = self.path(f"source_{serial}.cpp"), self.path(f"source_{serial}.s")
        shared = {"aliases": {}, "files": set(), "serial": serial * 100000}
        text = Source(source, self.options.include, shared).load().rewrite()
        with open(rewritten, "w", encoding="utf-8") as file:
            file.write(f'#include <cuda_runtime.h>\n#line 1 "{path_from_root(source)}"\n{text}\n')
        self.read |= {source} | shared["files"]
        depfile = self.path(f"source_{serial}.d")
        own_folder = ["-iquote", os.path.dirname(os.path.realpath(source))]
        self.run([*self.compiler, *self.flags, *own_folder, "-MD", "-MF", depfile, "-S", rewritten, "-o", assembled])
        self.read |= self.dependencies(depfile, rewritten)
        with open(assembled, encoding="utf-8") as file:
            return file.read()

    def object_of(self, text, name, keep_initialisers):
        """Adds the image's tables to the assembler's input; returns the object, and the names of kernels and variables."""
        completed, kernels, variables = assembly.complete(text, keep_initialisers)
        source, compiled = self.path(f"{name}.s"), self.path(f"{name}.o")
        with open(source, "w", encoding="utf-8") as file:
            file.write(completed)
        self.run([*self.compiler, "-c", source, "-o", compiled])
        return compiled, kernels, variables

    @staticmethod
    def dependencies(depfile, rewritten):
        with open(depfile, encoding="utf-8") as file:
            names = file.read().replace("\\\n", " ").split(":", 1)[1].split()
        return {name for name in names if name != rewritten}

    def make_executor(self, folder):
        os.makedirs(folder, exist_ok=True)
        for name in EXECUTOR + REGISTRATION:
            self.compile_executor(name, folder)

    def compile_executor(self, name, folder):
        self.run([*self.compiler, *self.flags, f"-std={EXECUTOR_STANDARD}", "-c", os.path.join(KERNELS, name), "-o",
                  os.path.join(folder, name + ".o")])

    def executor(self, names):
        """The executor's objects: those of --executor's folder, or else newly compiled ones."""
        if self.options.executor:
            return [os.path.join(self.options.executor, name + ".o") for name in names]
        for name in names:
            if not os.path.exists(self.path(name + ".o")):
                self.compile_executor(name, self.work)
        return [self.path(name + ".o") for name in names]

    def link_program(self, objects):
        folder = self.options.runtime or os.path.join(ROOT, "build", "simulator")
        if not os.path.isfile(os.path.join(folder, "libcudart.so.13")):
            raise CompilerFailed(f"{folder}/libcudart.so.13 is not there: build the simulator first, or pass "
                                 "--runtime FOLDER")
        names = ["libcudart.so.13"] + self.options.library
        self.run([*self.compiler, *objects, *self.executor(EXECUTOR + REGISTRATION), "-o", self.options.output,
                  "-Wl,--gc-sections", f"-L{folder}", *[f"-l:{name}" for name in names], "-ldl", "-lpthread"])

    def link_plugin(self, objects, output):
        exports = self.path("exports.map")
        with open(exports, "w", encoding="ascii") as file:
            file.write("{ global: spillway_sim_image; local: *; };\n")
        self.run([*self.compiler, *objects, *self.executor(EXECUTOR), "-o", output,
                  "-Wl,--gc-sections", "-shared", f"-Wl,--version-script={exports}", "-Wl,-z,defs"])

    def write_depfile(self):
        if self.options.depfile:
            files = sorted(os.path.realpath(name).replace(" ", "\\ ") for name in self.read)
            with open(self.options.depfile, "w", encoding="utf-8") as file:
                file.write(f"{self.options.output}: " + " ".join(files) + "\n")

    def all(self):
        plain, texts = [], []
        for serial, source in enumerate(self.options.source, 1):
            if source.endswith((".cpp", ".cc", ".c")):
                plain.append(self.plain_object(source, serial))
            else:
                texts.append(self.assembled(source, serial))
        if self.options.host:
            objects, kernels, variables = self.objects_of(texts, "program", keep_initialisers=True)
            self.link_program(plain + objects)
        plugin = self.options.plugin if self.options.host else self.options.output
        if plugin:
            objects, kernels, variables = self.objects_of(texts, "plugin", keep_initialisers=False)
            if not kernels and not variables and not self.options.host:
                raise CompilerFailed("no kernel was found: a template kernel needs a launch, an address taken or an explicit "
                                     "instantiation in the same file; a program without kernels needs no plug-in")
            self.link_plugin(objects, plugin)
        self.write_depfile()
        return kernels, variables

    def objects_of(self, texts, name, keep_initialisers):
        parts = [self.object_of(text, f"{name}_{i}", keep_initialisers) for i, text in enumerate(texts)]
        return [part[0] for part in parts], [k for part in parts for k in part[1]], [v for part in parts for v in part[2]]

    def plain_object(self, source, serial):
        compiled = self.path(f"source_{serial}.o")
        self.read.add(source)
        self.run([*self.compiler, *self.flags, "-c", source, "-o", compiled])
        return compiled

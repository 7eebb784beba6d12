"""Compiles rewritten sources and the executor into a plug-in or a program."""
import os
import re
import shlex
import subprocess

from . import assembly
from .rewrite import Source

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
KERNELS = os.path.join(ROOT, "simulator", "kernels")
SUPPORT = ["block_executor.cpp", "fiber.cpp", "plugin_image.cpp"]


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
    """AVX2 where the machine has it. Never fused multiply-add behind the program's back: results would differ."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            flags = re.search(r"^flags\s*:(.*)$", file.read(), re.M)
    except OSError:
        flags = None
    has = set(flags.group(1).split()) if flags else set()
    return ["-march=x86-64-v3"] if {"avx2", "fma", "bmi2", "movbe"} <= has else []


class Build:
    def __init__(self, options, work):
        self.options, self.work = options, work
        self.compiler = shlex.split(os.environ.get("CXX", "g++"))
        include = toolkit_include(options.cuda)
        self.flags = [f"-std={options.std}", f"-O{options.optimize}", *machine_flags(), "-ffp-contract=off",
                      "-fno-math-errno", "-fno-trapping-math", "-fPIC", "-fvisibility=hidden", "-fno-gnu-unique", "-fno-ipa-icf",
                      "-ffunction-sections", "-fdata-sections", "-Wno-unknown-pragmas", "-Wno-attributes",
                      f"-I{KERNELS}/device", f"-I{ROOT}"]
        self.flags += ["-g1"] if options.debug else []
        self.flags += ["-DCUDA_API_PER_THREAD_DEFAULT_STREAM=1"] if options.default_stream == "per-thread" else []
        self.flags += [f"-D{name}" for name in options.define]
        self.flags += [f"-I{folder}" for folder in options.include]
        self.flags += ["-isystem", include]
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

    def object_of(self, source, serial):
        """Compiles one .cu file; returns its object and what the image got from it."""
        rewritten, assembled = self.path(f"source_{serial}.cpp"), self.path(f"source_{serial}.s")
        shared = {"kernels": {}, "files": set(), "names": set(), "serial": serial * 100000}
        text = Source(source, self.options.include, shared).load().rewrite()
        with open(rewritten, "w", encoding="utf-8") as file:
            file.write(f'#include <cuda_runtime.h>\n#line 1 "{source}"\n{text}\n')
        self.read |= {source} | shared["files"]
        depfile = self.path(f"source_{serial}.d")
        own_folder = ["-iquote", os.path.dirname(os.path.realpath(source))]
        self.run([*self.compiler, *self.flags, *own_folder, "-MD", "-MF", depfile, "-S", rewritten, "-o", assembled])
        self.read |= self.dependencies(depfile, rewritten)
        with open(assembled, encoding="utf-8") as file:
            completed, kernels, variables = assembly.complete(file.read(), keep_initialisers=self.options.host)
        with open(assembled, "w", encoding="utf-8") as file:
            file.write(completed)
        compiled = self.path(f"source_{serial}.o")
        self.run([*self.compiler, "-c", assembled, "-o", compiled])
        return compiled, kernels, variables

    @staticmethod
    def dependencies(depfile, rewritten):
        with open(depfile, encoding="utf-8") as file:
            names = file.read().replace("\\\n", " ").split(":", 1)[1].split()
        return {name for name in names if name != rewritten}

    def support(self):
        sources = SUPPORT + (["program_registration.cpp"] if self.options.host else [])
        objects = []
        for name in sources:
            objects.append(self.path(name + ".o"))
            self.run([*self.compiler, *self.flags, "-c", os.path.join(KERNELS, name), "-o", objects[-1]])
        return objects

    def link(self, objects):
        command = [*self.compiler, *objects, "-o", self.options.output, "-Wl,--gc-sections"]
        if self.options.host:
            folder = self.options.runtime or os.path.join(ROOT, "build", "simulator")
            if not os.path.isfile(os.path.join(folder, "libcudart.so.13")):
                raise CompilerFailed(f"{folder}/libcudart.so.13 is not there: build the simulator first, or pass "
                                     "--runtime FOLDER")
            names = ["libcudart.so.13"] + self.options.library
            command += [f"-L{folder}", *[f"-l:{name}" for name in names], "-ldl", "-lpthread"]
        else:
            exports = self.path("exports.map")
            with open(exports, "w", encoding="ascii") as file:
                file.write("{ global: spillway_sim_image; local: *; };\n")
            command += ["-shared", f"-Wl,--version-script={exports}", "-Wl,-z,defs"]
        self.run(command)

    def write_depfile(self):
        if self.options.depfile:
            files = sorted(os.path.realpath(name).replace(" ", "\\ ") for name in self.read)
            with open(self.options.depfile, "w", encoding="utf-8") as file:
                file.write(f"{self.options.output}: " + " ".join(files) + "\n")

    def all(self):
        objects, kernels, variables = [], [], []
        for serial, source in enumerate(self.options.source, 1):
            if source.endswith((".cpp", ".cc", ".c")):
                objects.append(self.plain_object(source, serial))
                continue
            compiled, found_kernels, found_variables = self.object_of(source, serial)
            objects.append(compiled)
            kernels += found_kernels
            variables += found_variables
        if not kernels and not self.options.host:
            raise CompilerFailed("no kernel was found: a template kernel needs a launch, an address taken or an explicit "
                                 "instantiation in the same file")
        self.link(objects + self.support())
        self.write_depfile()
        return kernels, variables

    def plain_object(self, source, serial):
        compiled = self.path(f"source_{serial}.o")
        self.read.add(source)
        self.run([*self.compiler, *self.flags, "-c", source, "-o", compiled])
        return compiled

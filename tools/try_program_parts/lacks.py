"""What kept a program from being built or run: a name, where the program uses it, and who lacks it."""
import dataclasses
import pathlib
import re
import subprocess

SIMULATOR, MACHINE, PROGRAM = "simulator", "machine", "program"  # who lacks it; PROGRAM: the source is wrong

# A compiler's line: place, then the message. g++ writes FILE:LINE:COLUMN, nvcc FILE(LINE).
ERROR = re.compile(r"^(?P<file>[^\s:(][^:(\n]*?)(?::(?P<line>\d+)(?::\d+)?:|\((?P<nvcc_line>\d+)\):) (?:fatal )?error:? *(?P<text>.*)$",
                   re.M)
# simkernels' own line for source code that it does not understand.
UNSUPPORTED = re.compile(r"^(?:simkernels: )?(?P<file>[^\s:]+):(?P<line>\d+): (?!.*\berror:)(?P<text>[^\n]+)$", re.M)
MISSING_HEADER = re.compile(r'^"?([\w./+-]+)"?: No such file|cannot open source file "([^"]+)"')
UNDEFINED = re.compile(r"undefined (?:reference to|symbol:) [`'‘]?([\w:~<>(), *&]+)")
NAME_IN_TEXT = re.compile(r"[‘'\"`]([^’'\"`]+)[’'\"`]")
MISSING_KERNEL = re.compile(r"simulated GPU: no kernel '([^']+)'")
SYMBOLS = re.compile(r"\bU ((?:cu[A-Z]|cuda[A-Z]|__cuda[A-Z]|cublas|cudnn|cufft|curand|cusparse|cusolver|nvrtc)\w*)")
# Libraries of CUDA that a program may need; the driver is always simulated.
CUDA_LIBRARY = re.compile(r"\b(lib(?:cudart|cublas|cublasLt|cudnn\w*|cufft\w*|curand|cusparse|cusolver\w*|nvrtc|nvJitLink|"
                          r"npp\w+|nvjpeg|nccl)\.so[.\d]*)")


@dataclasses.dataclass(frozen=True)
class Lack:
    what: str  # short, the same for every program that lacks it
    place: str = ""  # FILE:LINE where that is known
    text: str = ""  # the message that said so
    by: str = SIMULATOR

    def line(self):
        place = f"{self.place}: " if self.place else ""
        detail = f" ({self.text})" if self.text and self.text != self.what else ""
        return f"{place}{self.what}{detail}"


def name_of(text):
    """The shortest words that stand for a compiler's message: the name that it complains about."""
    header = MISSING_HEADER.search(text)
    if header:
        return f"header {header[1] or header[2]}"
    quoted = NAME_IN_TEXT.search(text)
    if quoted and ("not declared" in text or "undefined" in text or "does not name" in text or "not a member" in text):
        return quoted[1]
    return text


def from_compiler(program, messages, by):
    """The errors in a compiler's `messages`, the first of each name."""
    found = {}
    for match in ERROR.finditer(messages):
        text = match["text"].strip()
        place = program.place(match["file"], match["line"] or match["nvcc_line"])
        lacks = MACHINE if MISSING_HEADER.search(text) and by == MACHINE else by
        found.setdefault(name_of(text), Lack(name_of(text), place, text, lacks))
    for match in UNSUPPORTED.finditer(messages) if not found else ():
        found.setdefault(match["text"], Lack(match["text"], program.place(match["file"], match["line"]), by=by))
    for name in UNDEFINED.findall(messages):
        found.setdefault(name.strip(), Lack(name.strip(), where_named(program, name), "undefined at link time", by))
    if not found:
        # The linker's summary is the last line, and says nothing.
        last = [line for line in messages.splitlines() if line.strip() and not line.startswith("collect2:")][-1:] or ["no message"]
        return [Lack(last[0].removeprefix("simkernels: "), by=by)]
    return list(found.values())


def where_named(program, name):
    """FILE:LINE of the first use of `name` in the program's sources, or nothing."""
    if not re.fullmatch(r"\w+", name):
        return ""
    # A function that the program calls as cudaFoo may be known to the libraries as cudaFoo_v2 or cudaFoo_ptsz.
    plain = re.compile(rf"\b{re.sub(r'(_v[0-9]+|_ptsz|_ptds)+$', '', name)}\b")
    for source in program.sources:
        for number, line in enumerate(source.read_text(encoding="utf-8", errors="replace").splitlines(), start=1):
            if plain.search(line):
                return program.place(source, number)
    return ""


def output_of(command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError:
        return ""


def defined_by(simulator_folder):
    """Every symbol that the simulator's libraries export."""
    names = set()
    for library in pathlib.Path(simulator_folder).glob("lib*.so*"):
        text = output_of(["nm", "-D", "--defined-only", str(library)])
        names |= {line.split()[-1].split("@")[0] for line in text.splitlines() if line}
    return names


def from_binary(program, binary, simulator_folder):
    """The libraries and functions of CUDA that the binary names and the simulator does not have."""
    needed = CUDA_LIBRARY.findall(output_of(["readelf", "-d", str(binary)]))
    libraries = [name for name in needed if not (pathlib.Path(simulator_folder) / name).exists()]
    undefined = set(SYMBOLS.findall(output_of(["nm", "-D", "--undefined-only", str(binary)])))
    prefixes = tuple(re.sub(r"^lib|\.so.*$", "", name) for name in libraries)
    missing = sorted(undefined - defined_by(simulator_folder))
    whole = [Lack(f"library {name}", where_named_first(program, [m for m in missing if m.startswith(prefix)]))
             for name, prefix in zip(libraries, prefixes)]
    return whole + [Lack(name, where_named(program, name), "not in the simulator's libraries")
                    for name in missing if not (prefixes and name.startswith(prefixes))]


def where_named_first(program, names):
    return next((place for place in (where_named(program, name) for name in names) if place), "")


def from_run(program, run):
    """What the simulator said that it lacks while the program ran."""
    found = [Lack(name, where_named(program, name), f"not supported, asked {count} times")
             for name, count in run.statistics.get("not_supported", {}).items()]
    found += [Lack(f"kernel {name}", text="no plug-in has it") for name in MISSING_KERNEL.findall(run.errors)]
    return found + [Lack(name, where_named(program, name), "undefined at run time") for name in UNDEFINED.findall(run.errors)]

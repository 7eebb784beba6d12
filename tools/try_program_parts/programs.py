"""Finds the programs in what the user named: a source file, a binary, a folder, or a folder of folders."""
import dataclasses
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
CUDA_SOURCES = (".cu",)
HOST_SOURCES = (".cpp", ".cc", ".cxx", ".c")
SOURCES = CUDA_SOURCES + HOST_SOURCES
HEADERS = (".h", ".hpp", ".cuh", ".inl", ".inc")
SOURCE_FOLDERS = ("src", "source")  # beside or below the files of a program's folder
INCLUDE_FOLDERS = ("inc", "include", "src", "source")
MAIN = re.compile(r"\b(?:int|void)\s+main\s*\(|^\s*main\s*\(", re.M)
INCLUDE = re.compile(r"#\s*include\s*[<\"]([\w./-]+)[\">]")
INCLUDED_SOURCE = re.compile(r'#\s*include\s*[<"]([^">]+\.(?:cu|cpp|cc|c))[">]')


class NoProgram(Exception):
    """What the user named holds no program."""


@dataclasses.dataclass
class Program:
    name: str
    folder: pathlib.Path  # with its files
    sources: list = dataclasses.field(default_factory=list)
    binary: pathlib.Path | None = None  # if the user gave a binary

    @property
    def cuda_sources(self):
        return [source for source in self.sources if source.suffix in CUDA_SOURCES]

    @property
    def include_folders(self):
        folders = [self.folder] if self.sources else []
        return folders + [self.folder / name for name in INCLUDE_FOLDERS if (self.folder / name).is_dir()]

    def place(self, path, line=None):
        """`path` as the user knows it, from the program's folder if it lies there. simkernels writes paths from ROOT."""
        path = pathlib.Path(path)
        if not path.is_absolute() and (ROOT / path).is_file():
            path = ROOT / path
        shown = path.relative_to(self.folder) if path.is_relative_to(self.folder) else path
        return f"{shown}:{line}" if line else str(shown)


def text_of(path):
    return path.read_text(encoding="utf-8", errors="replace")


def has_main(path):
    return MAIN.search(text_of(path)) is not None


def without_included(sources):
    """The sources that no other one includes: those are compilation units."""
    included = {pathlib.Path(name).name for source in sources for name in INCLUDED_SOURCE.findall(text_of(source))}
    return [source for source in sources if source.name not in included]


def sources_in(folder, whole_tree):
    folders = [folder] + [folder / name for name in SOURCE_FOLDERS if (folder / name).is_dir()]
    found = folder.rglob("*") if whole_tree else (path for place in folders for path in place.iterdir())
    return without_included(sorted(path for path in found if path.suffix in SOURCES and path.is_file()))


def programs_of_folder(folder, whole_tree):
    """One program per source with a main function; the other sources belong to each of them."""
    sources = sources_in(folder, whole_tree)
    mains = [source for source in sources if has_main(source)]
    others = [source for source in sources if source not in mains]
    if len(mains) == 1:
        return [Program(folder.name, folder, sources)]
    return [Program(f"{folder.name}/{main.stem}", folder, [main, *others]) for main in mains]


def programs_below(folder, whole_tree):
    found = programs_of_folder(folder, whole_tree)
    if found:
        return found
    inner = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    return [program for path in inner for program in programs_below(path, whole_tree)]


def companions(program, include_folders):
    """Host sources that lie beside headers of the user's include folders, where the program includes these headers."""
    own = [program.folder, *program.include_folders]
    names = {name for source in program.sources for name in INCLUDE.findall(text_of(source))}
    headers = [pathlib.Path(folder) / name for name in sorted(names) for folder in include_folders
               if not any((place / name).is_file() for place in own)]
    beside = [header.with_suffix(suffix).resolve() for header in headers if header.is_file() for suffix in HOST_SOURCES]
    known = {source.name for source in program.sources}
    return [source for source in beside if source.is_file() and source.name not in known and not has_main(source)]


def find(names, extra_sources=(), whole_tree=False, include_folders=()):
    """The programs that `names` hold, in order. Raises NoProgram."""
    extra = [pathlib.Path(name).resolve() for name in extra_sources]
    programs = []
    for name in names:
        path = pathlib.Path(name).resolve()
        if not path.exists():
            raise NoProgram(f"{name}: no such file or folder")
        if path.is_dir():
            found = programs_below(path, whole_tree)
            if not found:
                raise NoProgram(f"{name}: no source file here or below has a main function")
        elif path.suffix in SOURCES:
            found = [Program(path.stem, path.parent, [path])]
        else:
            found = [Program(path.name, path.parent, [], path)]
        for program in found:
            program.sources += extra
            program.sources += companions(program, include_folders)
        programs += found
    return programs

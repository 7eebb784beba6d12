"""What shared libraries need and define, as their dynamic symbol tables say (readelf). No code is read."""
import dataclasses
import re
import subprocess


@dataclasses.dataclass(frozen=True, order=True)
class Symbol:
    name: str
    version: str  # empty: none


@dataclasses.dataclass
class Library:
    needed: list  # SONAMEs
    imports: set  # of Symbol
    exports: set


def lines_of(path, *options):
    return subprocess.run(["readelf", "--wide", *options, str(path)], check=True, capture_output=True, text=True).stdout.splitlines()


def symbol_of(text):
    name, _, version = text.partition("@")
    return Symbol(name, version.lstrip("@"))


def read(path):
    """Weak imports are left out: a library loads without them."""
    needed = [found[1] for line in lines_of(path, "--dynamic") if (found := re.search(r"\(NEEDED\).*\[(.*)\]", line))]
    imports, exports = set(), set()
    for line in lines_of(path, "--dyn-syms"):
        columns = line.split()
        if len(columns) < 8 or not columns[0].endswith(":"):
            continue
        binding, section, name = columns[4], columns[6], columns[7]
        if section != "UND":
            exports.add(symbol_of(name))
        elif binding == "GLOBAL":
            imports.add(symbol_of(name))
    return Library(needed, imports, exports)

"""Makes libraries that stand in for those that a program is linked with and that are not there.

Each has the functions that the program's libraries import from it, under their versions. A function prints its name once,
in the simulator's words, and answers 1, which is an error in all of NVIDIA's libraries. So what is called and lacking can be
counted by name.
"""
import pathlib
import subprocess
import tempfile

from pytorch_parts import libraries

FUNCTION = """__attribute__((visibility("default"))) int {name}(void) {{
  static int told;
  if (!told++) fprintf(stderr, "spillway simulator: {name} is not simulated\\n");
  return 1;
}}
"""


def prefix(soname):
    """libnvshmem_host.so.3 -> nvshmem: how the names of its functions begin."""
    return soname.removeprefix("lib").split(".")[0].split("_")[0]


def lacking(linked, found):
    """The SONAMEs that `linked`, by path, need and that neither they nor `found` names provide, with the imported symbols."""
    own = {path.name for path in linked}
    exported = {symbol.name for library in linked.values() for symbol in library.exports}
    needed = {soname for library in linked.values() for soname in library.needed} - own - set(found)
    imports = {symbol for library in linked.values() for symbol in library.imports if symbol.name not in exported}
    return {soname: sorted(symbol for symbol in imports if symbol.name.startswith(prefix(soname))) for soname in sorted(needed)}


def make(soname, symbols, folder, compiler="cc"):
    versions = sorted({symbol.version for symbol in symbols if symbol.version})
    source = "#include <stdio.h>\n" + "".join(FUNCTION.format(name=name) for name in sorted({symbol.name for symbol in symbols}))
    with tempfile.TemporaryDirectory() as work:
        code, script = pathlib.Path(work) / "functions.c", pathlib.Path(work) / "versions.map"
        code.write_text(source, encoding="utf-8")
        script.write_text("".join(f"{version} {{ global: {' '.join(s.name + ';' for s in symbols if s.version == version)} }};\n"
                                  for version in versions), encoding="utf-8")
        command = [compiler, "-shared", "-fPIC", "-O1", f"-Wl,-soname,{soname}", "-o", str(folder / soname), str(code)]
        subprocess.run(command + ([f"-Wl,--version-script={script}"] if versions else []), check=True)


def make_all(linked, found, folder):
    folder.mkdir(parents=True, exist_ok=True)
    made = lacking({path: libraries.read(path) for path in linked}, found)
    for soname, symbols in made.items():
        make(soname, symbols, folder)
    return made

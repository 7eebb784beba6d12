#!/usr/bin/env python3
"""Generates stubs, per-thread twins, error names and cuGetProcAddress's table.

Input: symbols.txt (the exports of the toolkit's stub library), cudaTypedefs.h and cudaProfilerTypedefs.h (the CUDA version
that introduced each form), cuda.h (the CUresult enumeration), and the driver's sources (implemented symbols: SIM_API).
Output: three C++ files. A symbol without an implementation answers CUDA_ERROR_NOT_SUPPORTED and is counted by name.

usage: entries.py SYMBOLS CUDA_INCLUDE OUT_STUBS OUT_TWINS OUT_ERRORS SOURCE...
"""
import collections
import os
import re
import sys

SUFFIX = re.compile(r"^(?P<base>\w+?)(?:_v(?P<form>\d))?(?P<thread>_ptds|_ptsz)?$")
TYPEDEF = re.compile(r"\*PFN_(cu\w+?)_v(\d{4,5})(_ptds|_ptsz)?\)")
API = re.compile(r"\bSIM_API\((\w+)\)\s*\(([^)]*)\)")


def parse(symbol):
    match = SUFFIX.match(symbol)
    return match["base"], int(match["form"] or 1), bool(match["thread"])


def versions(include):
    """(base, per thread) -> sorted CUDA versions, one per form."""
    found = collections.defaultdict(set)
    for header in ("cudaTypedefs.h", "cudaProfilerTypedefs.h"):
        with open(os.path.join(include, header), encoding="utf-8") as text:
            for base, version, thread in TYPEDEF.findall(text.read()):
                found[base, bool(thread)].add(int(version))
    return {key: sorted(values) for key, values in found.items()}


def table(symbols, include):
    """Rows (name, version, per thread, symbol). The oldest form is the unsuffixed symbol; later forms are _v2 and so on."""
    forms = collections.defaultdict(list)
    for symbol in symbols:
        base, form, thread = parse(symbol)
        forms[base, thread].append((form, symbol))
    rows = []
    for key, numbers in sorted(versions(include).items()):
        names = [symbol for _, symbol in sorted(forms.get(key, []))]
        if len(names) != len(numbers):
            sys.exit(f"entries.py: {key}: versions {numbers} do not match symbols {names}")
        rows += [(key[0], number, key[1], name) for number, name in zip(numbers, names)]
    return rows


def implemented(sources):
    """Symbol -> parameter list, from the sources."""
    found = {}
    for source in sources:
        with open(source, encoding="utf-8") as text:
            for name, parameters in API.findall(text.read()):
                found[name] = " ".join(parameters.split())
    return found


def errors(include):
    """(name, value) of every CUresult in the header."""
    with open(os.path.join(include, "cuda.h"), encoding="utf-8") as text:
        header = text.read()
    body = header[header.index("typedef enum cudaError_enum"):header.index("} CUresult;")]
    return re.findall(r"^\s*(CUDA_\w+)\s*=\s*(\d+)", body, re.MULTILINE)


def description(name):
    return "no error" if name == "CUDA_SUCCESS" else name.removeprefix("CUDA_ERROR_").replace("_", " ").lower()


def twin(symbol, base_symbol, parameters):
    names = [part.split()[-1].lstrip("*") for part in parameters.split(",")] if parameters else []
    return (f"SIM_API({symbol})({parameters}) {{\n"
            f"  const PerThreadDefault scope;\n"
            f"  return {base_symbol}({', '.join(names)});\n}}\n")


def main():
    symbols_path, include, out_stubs, out_twins, out_errors, *sources = sys.argv[1:]
    with open(symbols_path, encoding="utf-8") as text:
        symbols = text.read().split()
    have = implemented(sources)
    unknown = sorted(set(have) - set(symbols))
    if unknown:
        sys.exit(f"entries.py: not in the toolkit's stub: {unknown}")

    twins, stubs = [], []
    for symbol in symbols:
        base_symbol = re.sub(r"_pt[ds][sz]$", "", symbol)
        if symbol in have:
            continue
        if base_symbol != symbol and base_symbol in have:
            twins.append((symbol, base_symbol))
        else:
            stubs.append(symbol)

    made = "// Made by entries.py from the toolkit's headers and this driver's sources.\n"
    with open(out_twins, "w", encoding="utf-8") as out:
        out.write(made + '#include "simulator/driver/device/context.h"\n\nusing spillway::simulator::PerThreadDefault;\n\n')
        for symbol, base_symbol in twins:
            out.write(f'extern "C" CUresult CUDAAPI {base_symbol}({have[base_symbol]});\n')
            out.write(twin(symbol, base_symbol, have[base_symbol]))
    with open(out_errors, "w", encoding="utf-8") as out:
        out.write(made + '#include "simulator/driver/error_names.h"\n\nnamespace spillway::simulator {\n\n'
                  "const ErrorName kErrorNames[] = {\n")
        for name, value in errors(include):
            out.write(f'    {{{value}, "{name}", "{description(name)}"}},\n')
        out.write("};\nconst std::size_t kErrorNameCount = sizeof kErrorNames / sizeof kErrorNames[0];\n\n"
                  "}  // namespace spillway::simulator\n")
    with open(out_stubs, "w", encoding="utf-8") as out:
        out.write(made + '#include "simulator/driver/machine/statistics.h"\n#include "simulator/driver/api/entries.h"\n\n')
        out.write("namespace {\nint NotSupported(const char* function) {\n"
                  "  spillway::simulator::TheStatistics().CountNotSupported(function);\n  return 801;\n}\n}  // namespace\n\n")
        for symbol in stubs:
            out.write(f'extern "C" __attribute__((visibility("default"))) int {symbol}() '
                      f'{{ return NotSupported("{symbol}"); }}\n')
        stubbed = set(stubs)
        for symbol in symbols:
            if symbol not in stubbed:
                out.write(f'extern "C" int {symbol}();\n')
        out.write("\nnamespace spillway::simulator {\nnamespace {\nconst Entry kEntries[] = {\n")
        for name, version, thread, symbol in table(symbols, include):
            flag = "true" if thread else "false"
            out.write(f'    {{"{name}", {version}, {flag}, reinterpret_cast<void*>(&{symbol})}},\n')
        out.write("};\n}  // namespace\n\nconst Entry* Entries() { return kEntries; }\n"
                  "std::size_t EntryCount() { return sizeof kEntries / sizeof kEntries[0]; }\n"
                  "}  // namespace spillway::simulator\n")


if __name__ == "__main__":
    main()

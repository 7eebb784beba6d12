"""Reads the kernels and globals out of the assembler's input and adds their tables to it.

Every kernel's function has a constant spillway_kernel_entry (body, parameters, count). Every device variable has a constant
spillway_global_<n> (address, size). Their symbols contain the mangled names that nvcc registers; no C++ expression yields
those. Shared variables have a tag in their names.
"""
import re

LABEL = re.compile(r"^([^\s:#]+):")
ENTRY = re.compile(r"^_ZZ(.+)E21spillway_kernel_entry(?:_\d+)?$")
SHARED = re.compile(r"^\s*\.(?:size|comm)\s+(\S*B15spillway_shared\S*),\s*(\d+)", re.M)
QUAD = re.compile(r"^\s*\.quad\s+(\S+)")


class NoImage(Exception):
    """The compiler did not lay out a description as expected."""


def words_after(lines, at, count):
    words = []
    for line in lines[at + 1 :]:
        match = QUAD.match(line)
        zero = re.match(r"^\s*\.zero\s+(\d+)", line)
        if match:
            words.append(match.group(1))
        elif zero:
            words += ["0"] * (int(zero.group(1)) // 8)
        else:
            break
        if len(words) == count:
            return words
    raise NoImage(f"unexpected layout behind {lines[at].strip()}")


def common_name(symbol):
    """The name that nvcc registers: without g++'s mark L of internal linkage, which nvcc does not have."""
    if symbol.startswith("_ZL"):
        return "_Z" + symbol[3:]
    if not symbol.startswith("_ZN"):
        return symbol
    at = 3
    while at < len(symbol) and symbol[at].isdigit():
        digits = re.match(r"\d+", symbol[at:]).group(0)
        at += len(digits) + int(digits)
    if symbol[at : at + 1] == "L":
        return symbol[:at] + symbol[at + 1 :]
    return symbol


def variable_name(symbol):
    """Variables outside namespaces are registered by their plain name."""
    match = re.match(r"^_ZL(\d+)", symbol)
    if match:
        return symbol[match.end() : match.end() + int(match.group(1))]
    return common_name(symbol)


def function_symbol(encoding):
    """The symbol of the function whose encoding a local constant's name contains; C functions have no parameters in it."""
    match = re.match(r"^(\d+)(.*)$", encoding)
    if match and len(match.group(2)) == int(match.group(1)):
        return match.group(2)
    return "_Z" + encoding


def find(lines):
    """([(function, body, parameters, count)], [(address, size)]) described in the file."""
    kernels, variables = {}, {}
    for i, line in enumerate(lines):
        match = LABEL.match(line)
        if not match:
            continue
        entry = ENTRY.match(match.group(1))
        if entry:
            function = function_symbol(entry.group(1))
            kernels[function] = [function, *words_after(lines, i, 3)]
        elif re.search(r"\d+spillway_global_\d+_\d+E?$", match.group(1)):
            words = words_after(lines, i, 2)
            variables[words[0]] = words
    return list(kernels.values()), list(variables.values())


def shared_variables(text):
    """Entries of the section that shared_memory.cpp reads."""
    found = dict(SHARED.findall(text))
    return "".join(f'\t.section\tspillway_shared_variables,"aw"\n\t.align 8\n\t.quad\t{name}, {size}\n'
                   for name, size in found.items())


def tables(kernels, variables):
    """The entries of plugin_image.cpp's sections, as assembly."""
    out, names = [], []

    def name_label(text):
        label = f".Lspillway_name_{len(names)}"
        names.append(f"{label}:\n\t.string\t\"{text}\"\n")
        return label

    for function, body, parameters, count in kernels:
        out.append('\t.section\tspillway_kernels,"aw"\n\t.align 8\n'
                   f"\t.quad\t{name_label(common_name(function))}, {body}, 0, {count}, {parameters}\n"
                   f'\t.section\tspillway_functions,"aw"\n\t.align 8\n\t.quad\t{function}\n')
    for address, size in variables:
        out.append('\t.section\tspillway_globals,"aw"\n\t.align 8\n'
                   f"\t.quad\t{name_label(variable_name(address))}, {address}, {size}\n")
    if names:
        out.append('\t.section\t.rodata.spillway_names,"a"\n' + "".join(names))
    return "".join(out)


def complete(text, keep_initialisers):
    """(the assembler's input with its tables, names of the kernels, names of the variables)."""
    kernels, variables = find(text.splitlines())
    if not keep_initialisers:
        # A plug-in runs kernels only: loading it must not run the host code's static initialisers.
        text = re.sub(r'\.section\t\.init_array[^\n]*', '.section\t.spillway_not_run,"a"', text)
    names = [common_name(kernel[0]) for kernel in kernels]
    return text + tables(kernels, variables) + shared_variables(text), names, [variable_name(variable[0]) for variable in variables]

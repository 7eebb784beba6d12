"""Finds the kernels, device functions and device variables of a file, and the text that the simulator adds to each."""
from . import tokens as t
from .parameters import ATTRIBUTE_WORDS, Parameters

DEVICE = "::spillway::simulator::device"
GLOBAL = f"{DEVICE}::GlobalDescription"
ENTRY = "[[gnu::used]] static constexpr ::spillway::simulator::KernelDescription spillway_kernel_entry"


def declaration_start(tokens, at):
    """Index of the first token of the declaration that contains `at`."""
    i = at - 1
    while i >= 0:
        token = tokens[i]
        if token.kind == "mark" and token.text in (";", "}", "{"):
            break
        if token.kind in ("directive", "inlined", "appended"):
            break
        if token.kind == "mark" and token.text in (")", "]"):
            i = t.matching_before(tokens, i)
        i -= 1
    return t.skip_quiet(tokens, i + 1)


def name_position(tokens, at, path):
    """Index of the kernel's name, the word before its parameter list, and the span of explicit template arguments."""
    i = at + 1
    while i < len(tokens):
        token = tokens[i]
        if token.kind == "mark" and token.text in (";", "{", "}"):
            break
        if token.kind == "word":
            after = t.skip_quiet(tokens, i + 1)
            if token.text in ATTRIBUTE_WORDS and t.is_mark(tokens, after, "("):
                i = t.matching(tokens, after) + 1
                continue
            if t.is_mark(tokens, after, "("):
                return i, None
            if t.is_mark(tokens, after, "<"):
                end = t.angle_end(tokens, after)
                if end is not None and t.is_mark(tokens, t.skip_quiet(tokens, end + 1), "("):
                    return i, (after, end)
        i += 1
    raise t.Unsupported(path, tokens[at].line, "cannot find the name of this __global__ function (declared by a macro?)")


def skip_trailing_attributes(tokens, at):
    at = t.skip_quiet(tokens, at)
    while t.is_word(tokens, at) and tokens[at].text in ATTRIBUTE_WORDS | {"noexcept"}:
        at = t.skip_quiet(tokens, at + 1)
        if t.is_mark(tokens, at, "("):
            at = t.skip_quiet(tokens, t.matching(tokens, at) + 1)
    return at


def one_line(text):
    """Added text must not shift later lines."""
    return " ".join(text.split())


class Kernel:
    """The definition of a kernel, and what is inserted into it: {index of a token: text before it}."""

    def __init__(self, tokens, parameters, open_brace, close_brace, path):
        self.open_brace, self.close_brace = open_brace, close_brace
        self.insertions = dict(parameters.insertions)
        self.path, self.broken = path, parameters.has_directives
        begin = f"constexpr auto spillway_threads = []({parameters.declared()}) -> void {{"
        end = (f"}}; {ENTRY} = {DEVICE}::Describe(spillway_threads); "
               f"{DEVICE}::LaunchConfigured(spillway_kernel_entry{parameters.names()});")
        self.insertions[open_brace + 1] = self.kept_in_place(begin, tokens[open_brace].line)
        # An empty body has one place for both.
        self.insertions[close_brace] = self.insertions.get(close_brace, "") + self.kept_in_place(end, tokens[close_brace].line)

    def kept_in_place(self, text, line):
        if not self.broken:
            return one_line(text)
        return f'{text}\n#line {line} "{self.path}"\n'


def parse_kernel(tokens, at, path, shown_path):
    """The Kernel defined around the `__global__` at index `at`; None for a mere declaration."""
    name_at, arguments = name_position(tokens, at, path)
    name = tokens[name_at].text
    open_paren = t.skip_quiet(tokens, (arguments[1] if arguments else name_at) + 1)
    close_paren = t.matching(tokens, open_paren)
    if close_paren is None:
        raise t.Unsupported(path, tokens[at].line, f"cannot read the parameters of kernel `{name}`")
    last = skip_trailing_attributes(tokens, close_paren + 1)
    if t.is_mark(tokens, last, ";"):
        return None
    if not t.is_mark(tokens, last, "{"):
        raise t.Unsupported(path, tokens[at].line, f"cannot read the declaration of kernel `{name}`")
    close_brace = t.matching(tokens, last)
    if close_brace is None:
        raise t.Unsupported(path, tokens[at].line, f"the braces of kernel `{name}` do not balance (split by #if?)")
    return Kernel(tokens, Parameters(tokens, open_paren + 1, close_paren), last, close_brace, shown_path)


def parse_device_function(tokens, at, qualifiers):
    """(index of `{`, index of `}`, whether it is a host function too) of the function around `__device__`, or None."""
    is_host, has_parameters, i = False, False, at
    while i < len(tokens):
        token = tokens[i]
        if token.kind == "word":
            is_host = is_host or "__host__" in qualifiers(token)
        elif token.kind == "mark":
            if token.text == "(":
                has_parameters = True
                i = t.matching(tokens, i)
                if i is None:
                    return None
            elif token.text in (";", "}") or (token.text == "=" and not has_parameters):
                return None
            elif token.text == "{":
                close = t.matching(tokens, i) if has_parameters else None
                return None if close is None else (i, close, is_host)
        i += 1
    return None


def parse_variable(tokens, at, serial):
    """(index of the closing `;`, text to append) of the device variable declared at `at`; None for a function."""
    start = declaration_start(tokens, at)
    i, name_at, names = start, None, []
    is_extern = False
    while i < len(tokens):
        token = tokens[i]
        if token.kind == "word":
            after = t.skip_quiet(tokens, i + 1)
            if token.text in ATTRIBUTE_WORDS and t.is_mark(tokens, after, "("):
                i = t.matching(tokens, after) + 1
                continue
            if token.text in ("template", "using", "typedef", "operator", "friend"):
                return None
            is_extern = is_extern or token.text == "extern"
            name_at = i
        elif token.kind == "mark":
            if token.text == "<":
                i = t.angle_end(tokens, i) or i
            elif token.text == "(":
                return None
            elif token.text in ("[", "=", ",", ";", "{"):
                if name_at is None or (not names and i < at):  # the qualifier belongs to a later lambda
                    return None
                names.append(tokens[name_at].text)
                i = end_of_declarator(tokens, i)
                if i is None:
                    return None
                if t.is_mark(tokens, i, ";"):
                    break
            elif token.text in ("}", ")"):
                return None
        i += 1
    if is_extern:
        return None  # the file that defines it describes it
    marks = "".join(f" [[gnu::used]] static const {GLOBAL} spillway_global_{serial}_{k} = {{&{name}, sizeof({name})}};"
                    for k, name in enumerate(names))
    return i, marks


def end_of_declarator(tokens, at):
    """Index of the `,` or `;` that ends the declarator around `at`."""
    while at < len(tokens):
        if tokens[at].kind == "mark":
            if tokens[at].text in (",", ";"):
                return at
            if tokens[at].text in t.OPENING:
                at = t.matching(tokens, at)
                if at is None:
                    return None
        at += 1
    return None

"""Finds the kernels and device variables that a file declares, and the text that the simulator needs after each."""
from . import tokens as t

KERNEL = "::spillway::simulator::device::Kernel"
GLOBAL = "::spillway::simulator::device::GlobalDescription"
ATTRIBUTE_WORDS = {"__launch_bounds__", "__attribute__", "__maxnreg__", "__cluster_dims__", "__block_size__", "alignas",
                   "__align__", "decltype", "__declspec"}
TYPE_WORDS = {"class", "typename", "auto", "int", "unsigned", "long", "short", "char", "bool", "signed", "const",
              "float", "double"}


class Kernel:
    """One declaration of a kernel."""

    def __init__(self, name, first, last, is_template, is_definition, is_instantiation, after):
        self.name, self.first, self.last = name, first, last
        self.is_template, self.is_definition, self.is_instantiation = is_template, is_definition, is_instantiation
        self.after = after  # text to append to the declaration


def declaration_start(tokens, at):
    """Index of the first token of the declaration that contains `at`."""
    i = at - 1
    while i >= 0:
        token = tokens[i]
        if token.kind == "mark" and token.text in (";", "}", "{"):
            break
        if token.kind == "directive":
            break
        if token.kind == "mark" and token.text in (")", "]"):
            i = t.matching_before(tokens, i)
        i -= 1
    return t.skip_quiet(tokens, i + 1)


def template_header(tokens, at):
    """(end, parameters) of the `template <...>` at `at`; parameters None for an explicit instantiation."""
    open_angle = t.skip_quiet(tokens, at + 1)
    if not t.is_mark(tokens, open_angle, "<"):
        return at, None
    end = t.angle_end(tokens, open_angle)
    return end, tokens[open_angle + 1 : end]


def template_parameters(tokens):
    """(text of the parameters, with names for unnamed ones; text of the arguments that name them)."""
    declared, names = [], []
    for i, part in enumerate(t.split_commas(tokens)):
        equals = next((k for k, token in enumerate(part) if token.kind == "mark" and token.text == "="), len(part))
        words = [k for k in range(equals) if part[k].kind == "word"]
        loud = [k for k in range(equals) if not part[k].quiet]
        last = words[-1] if words else None
        named = (last is not None and last == loud[-1] and part[last].text not in TYPE_WORDS and len(loud) > 1
                 and not t.is_mark(part, t.skip_quiet(part, last - 1, -1), "::"))
        pack = any(part[k].text == "." for k in range(equals))
        name = part[last].text if named else f"spillway_parameter_{i}"
        head = t.text_of(part[:equals])
        declared.append((head if named else f"{head.rstrip()} {name} ") + t.text_of(part[equals:]))
        names.append(name + ("..." if pack else ""))
    return ", ".join(declared), ", ".join(names)


def without_defaults(parameters):
    """A parameter list's text without default arguments."""
    out = []
    for part in t.split_commas(parameters):
        equals = next((k for k, token in enumerate(part) if token.kind == "mark" and token.text == "="), len(part))
        out.append(t.text_of(token for token in part[:equals] if token.kind != "comment"))
    return ", ".join(piece.strip() for piece in out)


def name_position(tokens, at, path):
    """Index of the kernel's name: the word before its parameter list."""
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
    """Appended text must not shift later lines."""
    return " ".join(text.split())


def parse_kernel(tokens, at, path, serial):
    """The Kernel declared around the `__global__` at index `at`."""
    first = declaration_start(tokens, at)
    header, is_instantiation, is_specialization = None, False, False
    i = first
    while t.is_word(tokens, i, "template"):
        end, parameters = template_header(tokens, i)
        if parameters is None:
            is_instantiation = True
        elif not t.text_of(parameters).strip():
            is_specialization = True
        else:
            header = parameters
        i = t.skip_quiet(tokens, end + 1)
    name_at, arguments = name_position(tokens, at, path)
    name = tokens[name_at].text
    open_paren = t.skip_quiet(tokens, (arguments[1] if arguments else name_at) + 1)
    close_paren = t.matching(tokens, open_paren)
    parameters = tokens[open_paren + 1 : close_paren]
    last = skip_trailing_attributes(tokens, close_paren + 1)
    is_definition = t.is_mark(tokens, last, "{")
    if is_definition:
        last = t.matching(tokens, last)
        if last is None:
            raise t.Unsupported(path, tokens[at].line, f"the braces of kernel `{name}` do not balance (split by #if?)")
    elif not t.is_mark(tokens, last, ";"):
        raise t.Unsupported(path, tokens[at].line, f"cannot read the declaration of kernel `{name}`")
    result = Kernel(name, first, last, header is not None, is_definition, is_instantiation, "")
    result.after = kernel_epilogue(result, qualifier(tokens, name_at), header, arguments and tokens[arguments[0] : arguments[1] + 1], parameters,
                                   is_specialization, serial)
    return result


def qualifier(tokens, name_at):
    """The text of `a::b::` before a name."""
    start = name_at
    while t.is_mark(tokens, start - 1, "::"):
        start -= 2 if t.is_word(tokens, start - 2) else 1
    return t.text_of(tokens[start:name_at])


def kernel_epilogue(kernel, scope, header, arguments, parameters, is_specialization, serial):
    signature = without_defaults(parameters)
    if kernel.is_template and scope:
        return ""  # defined outside its namespace: handled at the declaration inside
    if kernel.is_template and not is_specialization:
        declared, names = template_parameters(header)
        with_defaults = t.text_of(token for token in parameters if token.kind != "comment")
        return one_line(f" template <{declared}> {KERNEL}<(&{kernel.name}<{names}>)> "
                        f"spillway_kernel_of_{kernel.name}({with_defaults});")
    instance = scope + kernel.name + (t.text_of(arguments) if arguments else "")
    pointer = f"{KERNEL}<static_cast<void (*)({signature})>(&{instance})>"
    reference = (f" [[gnu::used]] static const void* const spillway_reference_{serial} = "
                 f"&{pointer}::spillway_kernel_entry;")
    if kernel.is_instantiation or is_specialization or scope:
        return one_line(reference) if kernel.is_instantiation or kernel.is_definition else ""
    with_defaults = t.text_of(token for token in parameters if token.kind != "comment")
    declaration = f" {pointer} spillway_kernel_of_{kernel.name}({with_defaults});"
    return one_line(declaration + (reference if kernel.is_definition else ""))


def parse_variable(tokens, at, path, serial):
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
        raise t.Unsupported(path, tokens[at].line, "extern device variables (relocatable device code) are not supported")
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

"""Translates inline PTX, as programs write it, into C++.

Registers are 64-bit words. The operations' meanings are in device/inline_ptx.h. An instruction without a line in the table
below becomes a call that does not compile, so that the compiler names the place only if the code is used.
"""
import re

from . import tokens as t

PTX = "::spillway::simulator::device::ptx"
TYPES = {"u8": "std::uint8_t", "u16": "std::uint16_t", "u32": "std::uint32_t", "u64": "std::uint64_t",
         "s8": "std::int8_t", "s16": "std::int16_t", "s32": "std::int32_t", "s64": "std::int64_t",
         "b8": "std::uint8_t", "b16": "std::uint16_t", "b32": "std::uint32_t", "b64": "std::uint64_t",
         "f32": "float", "f64": "double", "pred": "bool"}
WIDTHS = {"h": "std::uint16_t", "r": "std::uint32_t", "l": "std::uint64_t", "f": "float", "d": "double"}
# {T}: the instruction's type, {S}: its second type, {W}: the type of twice the width; {a}, {b}, {c}: sources of type T.
OPERATIONS = {
    "mov": "{a}", "cvta": "{a}", "neg": "-{a}", "not": "~{a}", "abs": f"{PTX}::Absolute({{a}})",
    "add": "{a} + {b}", "sub": "{a} - {b}", "and": "{a} & {b}", "or": "{a} | {b}", "xor": "{a} ^ {b}",
    "div": "{a} / {b}", "rem": "{a} % {b}", "min": f"{PTX}::Least<{{T}}>({{a}}, {{b}})",
    "max": f"{PTX}::Greatest<{{T}}>({{a}}, {{b}})",
    "mul": f"{PTX}::Low<{{T}}>({{a}}, {{b}})", "mul.lo": f"{PTX}::Low<{{T}}>({{a}}, {{b}})",
    "mul.hi": f"{PTX}::High<{{T}}>({{a}}, {{b}})", "mul.wide": "static_cast<{W}>({a}) * static_cast<{W}>({b})",
    "mad.lo": f"{PTX}::Low<{{T}}>({{a}}, {{b}}) + {{c}}", "mad.hi": f"{PTX}::High<{{T}}>({{a}}, {{b}}) + {{c}}",
    "mad.wide": "static_cast<{W}>({a}) * static_cast<{W}>({b}) + {c_wide}",
    "fma": "fma({a}, {b}, {c})", "mad": "fma({a}, {b}, {c})",
    "shl": f"{PTX}::ShiftLeft<{{T}}>({{a}}, {{b_u32}})", "shr": f"{PTX}::ShiftRight<{{T}}>({{a}}, {{b_u32}})",
    "popc": f"{PTX}::CountOnes<{{T}}>({{a}})", "clz": f"{PTX}::CountZeros<{{T}}>({{a}})",
    "brev": f"{PTX}::Reversed<{{T}}>({{a}})", "bfind": f"{PTX}::HighestBit<{{T}}>({{a}})",
    "bfe": f"{PTX}::Field<{{T}}>({{a}}, {{b_u32}}, {{c_u32}})",
    "bfi": f"{PTX}::WithField<{{T}}>({{a}}, {{b}}, {{c_u32}}, {{d_u32}})",
    "lop3": f"{PTX}::Logic3({{a}}, {{b}}, {{c}}, {{d_u32}})", "prmt": "__byte_perm({a}, {b}, {c})",
    "shf.l": f"{PTX}::Funnel({{a}}, {{b}}, {{c}}, true, {{wrap}})",
    "shf.r": f"{PTX}::Funnel({{a}}, {{b}}, {{c}}, false, {{wrap}})",
    "selp": "{c_pred} ? {a} : {b}", "sqrt": "sqrt({a})", "rcp": "1 / {a}", "rsqrt": "1 / sqrt({a})",
    "ex2": "exp2({a})", "lg2": "log2({a})", "sin": "sin({a})", "cos": "cos({a})", "tanh": "tanh({a})",
    "sad": f"{PTX}::Greatest<{{T}}>({{a}}, {{b}}) - {PTX}::Least<{{T}}>({{a}}, {{b}}) + {{c}}",
    "vabsdiff4": f"{PTX}::AbsoluteDifferences4({{a}}, {{b}}, {{c}})", "dp4a": "__dp4a({a}, {b}, {c})",
}
COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "lo": "<", "ls": "<=", "hi": ">",
               "hs": ">="}
ATOMICS = {"add": "atomicAdd", "min": "atomicMin", "max": "atomicMax", "and": "atomicAnd", "or": "atomicOr",
           "xor": "atomicXor", "exch": "atomicExch", "inc": "atomicInc", "dec": "atomicDec", "cas": "atomicCAS"}
SPECIAL = {"laneid": "LaneId()", "warpid": "WarpId()", "nwarpid": "WarpCount()", "smid": "0", "nsmid": "1", "gridid": "0",
           "clock": "clock()", "clock64": "clock64()", "globaltimer": "GlobalTimer()",
           "lanemask_eq": "LaneMask('=')", "lanemask_lt": "LaneMask('<')", "lanemask_le": "LaneMask('[')",
           "lanemask_gt": "LaneMask('>')", "lanemask_ge": "LaneMask(']')",
           "dynamic_smem_size": "DynamicSharedBytes()"}
INDEXES = {"tid": "threadIdx", "ntid": "blockDim", "ctaid": "blockIdx", "nctaid": "gridDim"}
NOTHING = ("membar", "fence", "prefetch", "prefetchu", "discard", "applypriority", "nanosleep", "pmevent",
           "griddepcontrol", "cp.async.commit_group", "cp.async.wait_group", "cp.async.wait_all")


class Unknown(Exception):
    """An instruction that the table does not have."""


class Translation:
    """The C++ of one asm statement: operands first, then the instructions."""

    def __init__(self, template, outputs, inputs):
        self.lines, self.after = [], []
        self.operand_widths = []
        self.registers = set()
        for number, (constraint, expression) in enumerate(outputs + inputs):
            self.operand(number, constraint, expression)
        for statement in self.statements(template):
            self.instruction(statement)

    def text(self):
        return "do { " + " ".join(self.lines + self.after) + " } while (0)"

    def operand(self, number, constraint, expression):
        letter = constraint.lstrip("=+&")
        if letter == "n":
            letter = "l"
        if letter not in WIDTHS:
            raise Unknown(f"operand constraint `{constraint}`")
        self.operand_widths.append(WIDTHS[letter])
        if constraint.startswith("="):
            self.lines.append(f"std::uint64_t spillway_{number} = 0;")
        else:
            self.lines.append(f"std::uint64_t spillway_{number} = {PTX}::Word<{WIDTHS[letter]}>({expression});")
        if constraint[0] in "=+":
            self.after.append(f"{PTX}::Assign<{WIDTHS[letter]}>({expression}, spillway_{number});")

    @staticmethod
    def statements(template):
        template = re.sub(r"/\*.*?\*/|//[^\n]*", " ", template, flags=re.S)
        # Braces of a block begin a statement; those of a vector never do.
        return [piece.strip(" \n\t").lstrip("{} \n\t") for piece in template.split(";")]

    def instruction(self, statement):
        statement = " ".join(statement.split())
        if not statement:
            return
        if statement.startswith(".reg"):
            self.declare(statement)
            return
        match = re.match(r"^(?:@(!?)(%?\w+)\s+)?([a-z][\w.:]*)\s*(.*)$", statement)
        if not match:
            raise Unknown(statement)
        negated, predicate, name, rest = match.groups()
        operands = self.split(rest)
        line = self.translated(name, operands)
        if predicate:
            line = f"if ({'!' if negated else ''}{self.source(predicate, 'bool')}) {{ {line} }}"
        self.lines.append(line)

    def declare(self, statement):
        names = statement.split(None, 2)[2] if len(statement.split(None, 2)) == 3 else ""
        for name in names.split(","):
            many = re.match(r"^(%?\w+)<(\d+)>$", name.strip())
            for one in ([f"{many.group(1)}{i}" for i in range(int(many.group(2)))] if many else [name.strip()]):
                self.registers.add(one)
                self.lines.append(f"[[maybe_unused]] std::uint64_t {self.register(one)} = 0;")

    @staticmethod
    def register(name):
        return "spillway_register_" + name.lstrip("%")

    @staticmethod
    def split(text):
        parts, depth, part = [], 0, ""
        for letter in text:
            depth += (letter in "[{(") - (letter in "]})")
            if letter == "," and depth == 0:
                parts.append(part.strip())
                part = ""
            else:
                part += letter
        return parts + [part.strip()] if part.strip() else parts

    def word(self, operand):
        """The register that an operand names, or None."""
        if re.fullmatch(r"%\d+", operand):
            return f"spillway_{operand[1:]}"
        return self.register(operand) if operand in self.registers else None

    def source(self, operand, type_name):
        negated = operand.startswith("!")
        operand = operand.lstrip("!")
        word = self.word(operand)
        if word:
            text = f"{PTX}::As<{type_name}>({word})"
        elif re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|\d+)U?", operand):
            text = f"static_cast<{type_name}>({operand.rstrip('U')}ll)"
        elif re.fullmatch(r"0[fFdD][0-9a-fA-F]+", operand):
            text = f"{PTX}::As<{type_name}>(0x{operand[2:]}ull)"
        elif re.fullmatch(r"-?\d+\.\d*", operand):
            text = f"static_cast<{type_name}>({operand})"
        else:
            text = f"static_cast<{type_name}>({self.special(operand)})"
        return f"!{text}" if negated else text

    @staticmethod
    def special(operand):
        name = operand.lstrip("%")
        index = re.fullmatch(r"(\w+)\.([xyz])", name)
        if index and index.group(1) in INDEXES:
            return f"{INDEXES[index.group(1)]}.{index.group(2)}"
        if name in SPECIAL and operand.startswith("%"):
            return SPECIAL[name] if name in ("smid", "nsmid", "gridid", "clock", "clock64") else f"{PTX}::{SPECIAL[name]}"
        raise Unknown(f"operand `{operand}`")

    def address(self, operand, type_name, parts=()):
        match = re.fullmatch(r"\[\s*(%?\w+)\s*(?:\+\s*(-?\w+)\s*)?\]", operand)
        word = self.word(match.group(1)) if match else None
        if not word:
            raise Unknown(f"address `{operand}`")
        function = "SharedAddress" if "shared" in parts or "shared::cta" in parts else "Address"
        return f"reinterpret_cast<{type_name}*>({PTX}::{function}({word}) + {match.group(2) or 0})"

    def store(self, target, type_name, expression):
        word = self.word(target)
        if target == "_":
            return f"static_cast<void>({expression});"
        if not word:
            raise Unknown(f"target `{target}`")
        return f"{word} = {PTX}::Word<{type_name}>(static_cast<{type_name}>({expression}));"

    def translated(self, name, operands):
        parts = name.split(".")
        if any(name == word or name.startswith(word + ".") for word in NOTHING):
            return ";"
        types = [part for part in parts if part in TYPES]
        type_name = TYPES[types[0]] if types else None
        if parts[0] in ("ld", "ldu", "st"):
            return self.memory(parts, operands, type_name)
        if parts[0] in ("atom", "red"):
            return self.atomic(parts, operands, type_name)
        if parts[0] == "setp":
            return self.comparison(parts, operands, type_name)
        if parts[0] == "cvt":
            return self.conversion(parts, operands, types)
        if parts[0] in ("bar", "barrier") and "warp" in parts:
            return f"__syncwarp({self.source(operands[0], 'unsigned')});"
        if parts[0] in ("bar", "barrier") and "sync" in parts and operands == ["0"]:
            return "__syncthreads();"
        if name in ("trap", "exit"):
            return "__trap();" if name == "trap" else "return;"
        if name.startswith("cp.async.ca") or name.startswith("cp.async.cg"):
            return self.copy(operands)
        if name == "activemask.b32":
            return self.store(operands[0], "std::uint32_t", "__activemask()")
        return self.computed(parts, operands, type_name)

    def computed(self, parts, operands, type_name):
        key = next((key for key in (".".join(parts[:2]), parts[0]) if key in OPERATIONS), None)
        if parts[0] == "vabsdiff4" and parts[-1] != "add":
            key = None
        if key is None or type_name is None or "sat" in parts or "cc" in parts:
            raise Unknown(".".join(parts))
        wide = {"std::uint16_t": "std::uint32_t", "std::int16_t": "std::int32_t", "std::uint32_t": "std::uint64_t",
                "std::int32_t": "std::int64_t"}.get(type_name, type_name)
        values = {"T": type_name, "W": wide, "wrap": "true" if "wrap" in parts else "false"}
        for letter, operand in zip("abcd", operands[1:]):
            for suffix, as_type in (("", type_name), ("_u32", "std::uint32_t"), ("_pred", "bool"), ("_wide", wide)):
                if "{" + letter + suffix + "}" in OPERATIONS[key]:
                    values[letter + suffix] = self.source(operand, as_type)
        try:
            expression = OPERATIONS[key].format(**values)
        except KeyError as missing:
            raise Unknown(".".join(parts)) from missing
        count = "std::uint32_t" if parts[0] in ("popc", "clz", "bfind") else None
        return self.store(operands[0], count or (wide if "wide" in parts else type_name), expression)

    def memory(self, parts, operands, type_name):
        is_store = parts[0] == "st"
        address, values = (operands[0], operands[1]) if is_store else (operands[1], operands[0])
        names = self.split(values.strip("{} "))
        out = []
        for i, name in enumerate(names):
            place = f"{self.address(address, type_name, parts)}[{i}]"
            out.append(f"{place} = {self.source(name, type_name)};" if is_store else self.store(name, type_name, place))
        return "{ " + " ".join(out) + " }"

    def atomic(self, parts, operands, type_name):
        operation = next((ATOMICS[part] for part in parts if part in ATOMICS), None)
        if operation is None:
            raise Unknown(".".join(parts))
        target = operands.pop(0) if parts[0] == "atom" else "_"
        arguments = ", ".join([self.address(operands[0], type_name, parts)] + [self.source(o, type_name) for o in operands[1:]])
        return self.store(target, type_name, f"{operation}({arguments})")

    def comparison(self, parts, operands, type_name):
        if parts[1] not in COMPARISONS or len(operands) != 3 or type_name is None:
            raise Unknown(".".join(parts))
        expression = f"{self.source(operands[1], type_name)} {COMPARISONS[parts[1]]} {self.source(operands[2], type_name)}"
        return self.store(operands[0], "bool", expression)

    def conversion(self, parts, operands, types):
        if len(types) != 2 or "sat" in parts:
            raise Unknown(".".join(parts))
        to, source = TYPES[types[0]], self.source(operands[1], TYPES[types[1]])
        rounding = next((part for part in parts if part in ("rni", "rzi", "rmi", "rpi")), None)
        if types[1][0] == "f" and types[0][0] != "f":
            function = {"rni": "nearbyint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}.get(rounding, "trunc")
            return self.store(operands[0], to, f"::spillway::simulator::device::Saturated<{to}>({function}({source}))")
        return self.store(operands[0], to, source)

    def copy(self, operands):
        if len(operands) != 3:
            raise Unknown("cp.async with a source size")
        to, source = self.address(operands[0], "char", ("shared",)), self.address(operands[1], "char")
        return f"memcpy({to}, {source}, {self.source(operands[2], 'std::uint32_t')});"


def sections(tokens, first, end):
    """The token lists between the top-level colons of an asm statement."""
    parts, i = [[]], first
    while i < end:
        token = tokens[i]
        if token.kind == "mark" and token.text in t.OPENING:
            close = t.matching(tokens, i)
            parts[-1] += tokens[i : close + 1]
            i = close + 1
            continue
        if token.kind == "mark" and token.text in (":", "::"):
            parts += [[] for _ in token.text]
        else:
            parts[-1].append(token)
        i += 1
    return parts


def operands_of(tokens):
    """[(constraint, expression)]; compilers accept operands without a comma between them."""
    out, i = [], t.skip_quiet(tokens, 0)
    while i < len(tokens):
        after = t.skip_quiet(tokens, i + 1)
        if tokens[i].kind != "string" or not t.is_mark(tokens, after, "("):
            raise Unknown("named operands")
        close = t.matching(tokens, after)
        out.append((tokens[i].text.strip('"'), t.text_of(tokens[after : close + 1])))
        i = t.skip_quiet(tokens, close + 1)
        if t.is_mark(tokens, i, ","):
            i = t.skip_quiet(tokens, i + 1)
    return out


def template_of(tokens):
    if any(not token.quiet and token.kind != "string" for token in tokens):
        raise Unknown("a template made by a macro")
    text = "".join(token.text[1:-1] for token in tokens if token.kind == "string")
    return text.replace("\\n", "\n").replace("\\t", " ").replace("\\\n", "\n").replace("%%", "%")


def refusal(what, path, line, serial):
    message = f"{path}:{line}: inline PTX ({what}) cannot run in the simulator; give it an alternative under "
    message = (message + "#ifndef SPILLWAY_SIMULATED_KERNELS").replace("\\", "").replace('"', "'")
    name = f"spillway_unknown_ptx_{serial}"
    return f'do {{ __attribute__((error("{message}"))) extern void {name}(); {name}(); }} while (0)'


def translate(tokens, at, path, serial):
    """(index of the statement's last token before `;`, its C++)."""
    i = t.skip_quiet(tokens, at + 1)
    while t.is_word(tokens, i):
        i = t.skip_quiet(tokens, i + 1)
    end = t.matching(tokens, i) if t.is_mark(tokens, i, "(") else None
    if end is None:
        raise t.Unsupported(path, tokens[at].line, "cannot read this asm statement")
    parts = sections(tokens, i + 1, end) + [[], []]
    try:
        text = Translation(template_of(parts[0]), operands_of(parts[1]), operands_of(parts[2])).text()
    except Unknown as unknown:
        text = refusal(str(unknown), path, tokens[at].line, serial)
    return end, " ".join(text.split())

"""Rewrites CUDA syntax (kernels, launches, shared memory, inline PTX) into C++ for g++."""
import os
import re

from . import declarations as d
from . import inline_ptx
from . import tokens as t
from .parameters import ATTRIBUTE_WORDS

DEVICE = "::spillway::simulator::device"
EXECUTOR = "::spillway::simulator::executor"
CUDA_SYNTAX = re.compile(r"__global__|__device__|__constant__|__shared__|__managed__|<<<|#\s*include\s*<thrust/")
QUOTED_INCLUDE = re.compile(r'\s*#\s*include\s*"([^"]+)"')
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
NOT_SUPPORTED_WORDS = {
    "tex2Dgather": "texture gathers", "surfCubemapread": "cube map surfaces",
}
OBJECT_MACRO = re.compile(r"\s*#\s*define\s+(\w+)\s+(.*)$", re.S)
ATTRIBUTE = re.compile(r"\b(" + "|".join(sorted(ATTRIBUTE_WORDS)) + r")\s*(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))")
# Functions that device code and host code call by one name (device_runtime.h).
DEVICE_RUNTIME = {
    "cudaMalloc", "cudaFree", "cudaMemcpyAsync", "cudaMemsetAsync", "cudaStreamCreateWithFlags", "cudaStreamDestroy",
    "cudaStreamWaitEvent", "cudaEventCreateWithFlags", "cudaEventRecord", "cudaEventDestroy", "cudaGetLastError",
    "cudaPeekAtLastError", "cudaGetErrorString", "cudaGetErrorName", "cudaGetDevice", "cudaGetDeviceCount", "clock",
}


def path_from_root(path):
    """The path as the rewritten text states it: inside the tree from its root, so that ccache serves every clone."""
    absolute = os.path.realpath(path)
    return os.path.relpath(absolute, ROOT) if absolute.startswith(ROOT + os.sep) else path


class Source:
    """One .cu file, or a header that it includes, during its rewriting."""

    def __init__(self, path, include_folders, shared):
        self.path = path
        self.folders = include_folders
        self.shared = shared  # names of kernels and included files, for all sources of the program
        self.tokens = []
        self.asking = []  # bodies for host and device that ask for the architecture: (index of `{`, index of `}`)

    def load(self):
        with open(self.path, encoding="utf-8") as file:
            text = file.read()
        self.tokens = self.fold_directives(t.split(text))
        return self

    def fold_directives(self, tokens):
        """Turns each preprocessor line into one token of kind `directive`, so that parsing skips it."""
        out, i, line_start = [], 0, True
        while i < len(tokens):
            token = tokens[i]
            if line_start and token.kind == "mark" and token.text == "#":
                end = i
                while end < len(tokens) and not (tokens[end].kind == "space" and "\n" in self.plain(tokens[end].text)):
                    end += 1
                out.append(t.Token("directive", t.text_of(tokens[i:end]), token.line))
                i = end
                continue
            if token.kind == "space":
                line_start = line_start or "\n" in token.text
            elif token.kind != "comment":
                line_start = False
            out.append(token)
            i += 1
        return out

    @staticmethod
    def plain(space):
        return space.replace("\\\n", "")

    def rewrite(self):
        self.check_supported()
        self.learn_aliases()
        self.expand_includes()
        self.mark_device_code()
        self.split_host_and_device()
        self.device_vocabulary()
        self.inline_assembly()
        self.declarations()
        self.shared_memory()
        self.launches_in(self.tokens)
        self.macros()
        return t.text_of(self.tokens)

    def check_supported(self):
        skipped = []  # per open #if: True if its current branch is not for the simulator
        for i, token in enumerate(self.tokens):
            if token.kind == "directive":
                self.follow_condition(token.text, skipped)
                self.check_include(token)
            elif token.kind == "word" and not any(skipped):
                self.check_word(i, token)

    @staticmethod
    def follow_condition(text, skipped):
        word = re.match(r"\s*#\s*(\w+)", text)
        word = word.group(1) if word else ""
        if word in ("if", "ifdef", "ifndef"):
            names = "SPILLWAY_SIMULATED_KERNELS" in text
            skipped.append((word == "ifndef" or "!" in text) if names else None)
        elif word == "endif" and skipped:
            skipped.pop()
        elif word in ("else", "elif") and skipped and skipped[-1] is not None:
            skipped[-1] = not skipped[-1]

    def check_include(self, token):
        """An include of CUB becomes an error that only a compiled branch meets."""
        if re.match(r'\s*#\s*include\s*[<"]cub/', token.text):
            token.text = f'#error "{self.path}:{token.line}: CUB is not supported by the simulator"'

    def check_word(self, i, token):
        if token.text in NOT_SUPPORTED_WORDS and t.is_mark(self.tokens, t.skip_quiet(self.tokens, i + 1), "("):
            raise t.Unsupported(self.path, token.line,
                                f"{NOT_SUPPORTED_WORDS[token.text]} ({token.text}) are not supported by the simulator")

    def expand_includes(self):
        """Inserts local headers with CUDA syntax (also in headers that they include), rewritten.

        Other local headers remain includes, by a path that does not depend on the including folder, which the compiler no
        longer knows: from the tree's root, which is an include folder, or absolute.
        """
        out = []
        for token in self.tokens:
            match = QUOTED_INCLUDE.match(token.text) if token.kind == "directive" else None
            found = match and self.find(match.group(1))
            if token.kind == "directive" and re.match(r"\s*#\s*include\s*<thrust/", token.text):
                token.text += (f'\n#include "simulator/kernels/device/thrust/algorithms.h"\n'
                               f'#line {token.line} "{path_from_root(self.path)}"')
            if not found:
                out.append(token)
                continue
            if not self.has_cuda_syntax(found):
                out.append(t.Token("directive", f'#include "{path_from_root(found)}"', token.line))
                continue
            if found in self.shared["files"]:
                continue
            self.shared["files"].add(found)
            text = Source(found, self.folders, self.shared).load().rewrite()
            text = re.sub(r"(?m)^[ \t]*#[ \t]*pragma[ \t]+once\b", "", text)  # `files` makes sure that it is inserted once
            out.append(t.Token("inlined", f'#line 1 "{path_from_root(found)}"\n{text}\n'
                               f'#line {token.line} "{path_from_root(self.path)}"\n', token.line))
        self.tokens = out

    def find(self, name, includer=None):
        for folder in [os.path.dirname(includer or self.path) or "."] + self.folders:
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                return os.path.realpath(path)
        return None

    def has_cuda_syntax(self, path):
        known = self.shared.setdefault("cuda_syntax", {})
        if path not in known:
            known[path] = False  # for a header that includes itself
            with open(path, encoding="utf-8", errors="replace") as file:
                text = file.read()
            included = [self.find(name, path) for name in re.findall(r'^\s*#\s*include\s*"([^"]+)"', text, re.M)]
            known[path] = CUDA_SYNTAX.search(text) is not None or any(
                self.has_cuda_syntax(header) for header in included if header)
        return known[path]

    def learn_aliases(self):
        """Macros that stand for qualifiers only, such as `#define KERNEL extern "C" __global__`."""
        for token in self.tokens:
            match = OBJECT_MACRO.match(token.text) if token.kind == "directive" else None
            text = ATTRIBUTE.sub("", match.group(2)) if match else ""
            words = set(re.findall(r"\w+", text)) & {"__global__", "__device__", "__host__"}
            if words and not re.search(r"[(){};]", text):
                self.shared["aliases"][match.group(1)] = words

    def qualifiers(self, token):
        """The CUDA qualifiers that a word stands for."""
        if token.kind != "word":
            return ()
        return self.shared["aliases"].get(token.text, (token.text,))

    def mark_device_code(self):
        """Marks the tokens in bodies of functions that run on the device (`both`: on the host too)."""
        for i, token in enumerate(self.tokens):
            if {"__global__", "__device__"} & set(self.qualifiers(token)):
                words = {word for near in self.tokens[d.declaration_start(self.tokens, i) : i + 1]
                         for word in self.qualifiers(near)}
                body = d.parse_device_function(self.tokens, i, self.qualifiers)
                if body:
                    self.mark_body(body[0], body[1], "both" if body[2] or "__host__" in words else "device", words)

    def mark_body(self, first, last, where, words):
        inside = self.tokens[first:last]
        for token in inside:
            token.where = where
        asks = any(token.kind == "directive" and "__CUDA_ARCH__" in token.text for token in inside)
        is_plain = "constexpr" not in words and not any(token.text == "goto" for token in inside)
        if where == "both" and asks and is_plain:
            self.asking.append((first, last))

    def split_host_and_device(self):
        """Gives a function that asks for the architecture one body on the device and another on the host."""
        for first, last in reversed(self.asking):
            body = self.tokens[first : last + 1]
            copy = [t.Token(token.kind, token.text, token.line) for token in body]
            for token in copy:
                token.where = "device"
            line = f'\n#line {body[0].line} "{path_from_root(self.path)}"\n'
            self.tokens[first : last + 1] = [t.Token("appended", f"{{ if ({EXECUTOR}::OnDevice()) ", body[0].line), *copy,
                                             t.Token("appended", f" else{line}", body[0].line), *body,
                                             t.Token("appended", " }", body[-1].line)]

    def mark_device_conditions(self):
        """Marks the conditions around definitions of device functions: the host need not see these."""
        open_groups = []  # per #if: its directives, and whether it surrounds device functions
        for token in self.tokens:
            word = re.match(r"\s*#\s*(if|ifdef|ifndef|elif|else|endif)\b", token.text) if token.kind == "directive" else None
            if not word:
                if token.kind == "word" and {"__device__", "__global__"} & set(self.qualifiers(token)) and not token.where:
                    for group in open_groups:
                        group[1] = True
                continue
            if word.group(1).startswith("if"):
                open_groups.append([[], False])
            if not open_groups:
                continue
            open_groups[-1][0].append(token)
            if word.group(1) == "endif":
                directives, surrounds = open_groups.pop()
                for directive in directives if surrounds else ():
                    directive.where = "device"

    def device_vocabulary(self):
        """Gives device code the architecture's macro and the device's own runtime functions."""
        self.mark_device_conditions()
        for i, token in enumerate(self.tokens):
            if token.where != "device":
                continue
            if token.kind == "directive" or token.text == "__CUDA_ARCH__":
                token.text = token.text.replace("__CUDA_ARCH__", "SPILLWAY_CUDA_ARCH")
            elif (token.kind == "word" and token.text in DEVICE_RUNTIME
                  and t.is_mark(self.tokens, t.skip_quiet(self.tokens, i + 1), "(")
                  and self.tokens[t.skip_quiet(self.tokens, i - 1, -1)].text not in ("::", ".", "->")):
                token.text = f"{DEVICE}::runtime::{token.text}"

    def inline_assembly(self):
        out, i = [], 0
        while i < len(self.tokens):
            token = self.tokens[i]
            if token.kind == "word" and token.text in ("asm", "__asm__", "__asm") and token.where:
                end, text = inline_ptx.translate(self.tokens, i, self.path, self.serial())
                out.append(t.Token("appended", text + "\n" * t.text_of(self.tokens[i : end + 1]).count("\n"), token.line))
                i = end
            else:
                out.append(token)
            i += 1
        self.tokens = out

    def declarations(self):
        """Makes kernels into the functions that launch them, and describes device variables to the driver."""
        before = {}
        for i, token in enumerate(self.tokens):
            if "__global__" in self.qualifiers(token):
                kernel = d.parse_kernel(self.tokens, i, self.path, path_from_root(self.path))
                before.update(kernel.insertions if kernel else {})
            elif token.kind == "word" and token.text in ("__device__", "__constant__", "__managed__"):
                parsed = d.parse_variable(self.tokens, i, self.serial())
                if parsed:
                    before.setdefault(parsed[0] + 1, parsed[1])
        self.tokens = self.with_insertions(self.tokens, before)

    @staticmethod
    def with_insertions(tokens, before):
        out = []
        for i, token in enumerate(tokens):
            if i in before:
                out.append(t.Token("appended", before[i], token.line))
            out.append(token)
        if len(tokens) in before:
            out.append(t.Token("appended", before[len(tokens)], tokens[-1].line))
        return out

    def serial(self):
        self.shared["serial"] += 1
        return self.shared["serial"]

    def shared_memory(self):
        """Rewrites `extern __shared__ T x[];`, the block's dynamic memory. Other __shared__ is a macro (qualifiers.h)."""
        i = 0
        while i < len(self.tokens):
            if t.is_word(self.tokens, i, "__shared__"):
                i = self.shared_declaration(i)
            i += 1

    def shared_declaration(self, at):
        start = d.declaration_start(self.tokens, at)
        end = next((k for k in range(at, len(self.tokens)) if t.is_mark(self.tokens, k, ";")), None)
        if end is None:
            raise t.Unsupported(self.path, self.tokens[at].line, "cannot read this __shared__ declaration")
        words = [token.text for token in self.tokens[start:end] if token.kind == "word"]
        if "extern" not in words:
            # `__shared__` becomes `static`; in C++ alignas must precede it.
            for k in range(start, end):
                if t.is_word(self.tokens, k, "alignas"):
                    self.tokens[k] = t.Token("word", "__align__", self.tokens[k].line)
                elif t.is_word(self.tokens, k, "static"):
                    self.tokens[k] = t.Token("space", " ", self.tokens[k].line)
            return end
        bracket = next((k for k in range(at, end) if t.is_mark(self.tokens, k, "[")), None)
        if bracket is None:
            raise t.Unsupported(self.path, self.tokens[at].line, "extern __shared__ must declare an array: T name[]")
        name = t.skip_quiet(self.tokens, bracket - 1, -1)
        type_tokens = self.type_of_shared(start, name)
        rest = t.text_of(self.tokens[t.matching(self.tokens, bracket) + 1 : end])
        new = (f"static auto& {self.tokens[name].text} = "
               f"*reinterpret_cast<{t.text_of(type_tokens).strip()} (*)[1]{rest}>"
               f"(::spillway::simulator::executor::dynamic_shared)")
        self.tokens[start:end] = [t.Token("appended", new, self.tokens[start].line)]
        return start + 1

    def type_of_shared(self, start, name):
        out, i = [], start
        while i < name:
            token = self.tokens[i]
            after = t.skip_quiet(self.tokens, i + 1)
            if token.kind == "word" and token.text in ("extern", "__shared__"):
                i += 1
                continue
            if token.kind == "word" and token.text in ATTRIBUTE_WORDS and t.is_mark(self.tokens, after, "("):
                i = t.matching(self.tokens, after) + 1
                continue
            out.append(token)
            i += 1
        return out

    def launches_in(self, tokens):
        at = 0
        while at < len(tokens):
            if t.is_mark(tokens, at, "<<<"):
                at = self.launch(tokens, at)
            at += 1

    def launch(self, tokens, at):
        """kernel<<<configuration>>>(arguments) becomes (Configure(configuration), kernel(arguments))."""
        line = tokens[at].line
        end = self.configuration_end(tokens, at)
        open_paren = t.skip_quiet(tokens, end + 1)
        close = t.matching(tokens, open_paren) if t.is_mark(tokens, open_paren, "(") else None
        start = self.kernel_expression(tokens, at)
        if close is None or start is None:
            raise t.Unsupported(self.path, line, "cannot read this kernel launch")
        configuration = t.text_of(tokens[at + 1 : end])
        expression = t.text_of(tokens[start:at]).strip()
        configure = "ConfigureChild" if tokens[at].where == "device" else "Configure"
        tokens.insert(close + 1, t.Token("appended", ")", tokens[close].line))
        tokens[start : end + 1] = [t.Token("appended", f"({DEVICE}::{configure}({configuration}), {expression}", line)]
        return start

    def configuration_end(self, tokens, at):
        i = at + 1
        while i < len(tokens):
            if tokens[i].kind == "mark":
                if tokens[i].text == ">>>":
                    return i
                if tokens[i].text in t.OPENING:
                    i = t.matching(tokens, i)
                    if i is None:
                        break
            i += 1
        raise t.Unsupported(self.path, tokens[at].line, "this <<< has no >>>")

    def kernel_expression(self, tokens, at):
        """Start of the expression before `<<<`; None if it cannot be read."""
        i = t.skip_quiet(tokens, at - 1, -1)
        if 0 <= i and tokens[i].kind == "mark" and set(tokens[i].text) == {">"}:
            i = t.angle_start(tokens, i)
            i = None if i is None else t.skip_quiet(tokens, i - 1, -1)
        if i is None or i < 0:
            return None
        if t.is_mark(tokens, i, ")") or t.is_mark(tokens, i, "]"):
            i = t.matching_before(tokens, i)
            before = t.skip_quiet(tokens, i - 1, -1)
            i = before if t.is_word(tokens, before) else i
        while True:
            before = t.skip_quiet(tokens, i - 1, -1)
            if not (before >= 0 and tokens[before].kind == "mark" and tokens[before].text in ("::", "->", ".", "##")):
                return i
            owner = t.skip_quiet(tokens, before - 1, -1)
            if owner >= 0 and tokens[owner].kind == "mark" and set(tokens[owner].text) == {">"}:
                owner = t.skip_quiet(tokens, t.angle_start(tokens, owner) - 1, -1)
            i = owner if t.is_word(tokens, owner) else before

    def macros(self):
        """Rewrites kernels, launches and inline PTX in macros."""
        for token in self.tokens:
            if token.kind == "directive" and re.search(r"<<<|\b__global__|\b__shared__|\basm\b", token.text):
                inner = Macro(self, t.split(token.text, token.line))
                token.text = inner.rewrite()


class Macro(Source):
    """One #define whose replacement has CUDA syntax."""

    def is_head_of_kernel(self):
        """Whether it declares a kernel whose body stands elsewhere: that would become an ordinary function."""
        name = OBJECT_MACRO.match(t.text_of(self.tokens))
        return not (name and name.group(1) in self.shared["aliases"]) and any(
            t.is_word(self.tokens, i, "__global__") for i in range(len(self.tokens)))

    def __init__(self, source, tokens):
        super().__init__(source.path, source.folders, source.shared)
        self.tokens = tokens

    def rewrite(self):
        self.mark_device_code()
        for token in self.tokens:
            token.where = token.where or "both"  # a macro does not say where it is used
        try:
            self.inline_assembly()
            self.declarations()
        except t.Unsupported as problem:
            if self.is_head_of_kernel():
                raise problem
        self.shared_memory()
        self.launches_in(self.tokens)
        return t.text_of(self.tokens).replace("\n", "\\\n").replace("\\\\\n", "\\\n")

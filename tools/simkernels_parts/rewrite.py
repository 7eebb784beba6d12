"""Rewrites CUDA syntax (launches, shared memory, kernels' identities) into C++ for g++."""
import os
import re

from . import declarations as d
from . import tokens as t

DEVICE = "::spillway::simulator::device"
CUDA_SYNTAX = re.compile(r"__global__|__device__|__constant__|__shared__|__managed__|<<<")
QUOTED_INCLUDE = re.compile(r'\s*#\s*include\s*"([^"]+)"')
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
NOT_SUPPORTED_INCLUDES = {
    "mma.h": "tensor core fragments (wmma)",
    "cuda_pipeline.h": "asynchronous copies (cuda_pipeline)", "cuda/barrier": "cuda::barrier",
    "curand_kernel.h": "device-side cuRAND", "cub/cub.cuh": "CUB", "thrust/device_vector.h": "Thrust",
}
NOT_SUPPORTED_WORDS = {
    "texCubemap": "cube map fetches", "tex2Dgather": "texture gathers", "surfCubemapread": "cube map surfaces",
    "cudaTriggerProgrammaticLaunchCompletion": "programmatic dependent launches",
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
        self.expand_includes()
        self.learn_declarations()
        self.shared_memory()
        self.addresses_of_kernels()
        self.launches_in(self.tokens)
        self.directives()
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
        match = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', token.text)
        if match and match.group(1) in NOT_SUPPORTED_INCLUDES:
            raise t.Unsupported(self.path, token.line,
                                f"{NOT_SUPPORTED_INCLUDES[match.group(1)]} is not supported by the simulator")

    def check_word(self, i, token):
        if token.text in NOT_SUPPORTED_WORDS and t.is_mark(self.tokens, t.skip_quiet(self.tokens, i + 1), "("):
            raise t.Unsupported(self.path, token.line,
                                f"{NOT_SUPPORTED_WORDS[token.text]} ({token.text}) are not supported by the simulator")
        if token.text in ("asm", "__asm__"):
            raise t.Unsupported(self.path, token.line, "inline PTX (asm) cannot run in the simulator; "
                                "give it an alternative under #ifndef SPILLWAY_SIMULATED_KERNELS")

    def expand_includes(self):
        """Inserts local headers with CUDA syntax (also in headers that they include), rewritten.

        Other local headers remain includes, by a path that does not depend on the including folder, which the compiler no
        longer knows: from the tree's root, which is an include folder, or absolute.
        """
        out = []
        for token in self.tokens:
            match = QUOTED_INCLUDE.match(token.text) if token.kind == "directive" else None
            found = match and self.find(match.group(1))
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

    def learn_declarations(self):
        """Appends the simulator's descriptions to kernels and device variables."""
        after = {}
        kernels = [i for i, token in enumerate(self.tokens) if token.kind == "word" and token.text == "__global__"]
        for i in kernels:
            kernel = d.parse_kernel(self.tokens, i, self.path, self.serial())
            self.shared["kernels"].setdefault(kernel.name, False)
            self.shared["kernels"][kernel.name] |= kernel.is_template
            self.shared["names"].add(id(self.tokens[d.name_position(self.tokens, i, self.path)[0]]))
            after[kernel.last] = after.get(kernel.last, "") + kernel.after
        for i, token in enumerate(self.tokens):
            if token.kind == "word" and token.text in ("__device__", "__constant__", "__managed__"):
                self.learn_variable(i, after)
        out = []
        for i, token in enumerate(self.tokens):
            out.append(token)
            if i in after:
                out.append(t.Token("appended", after[i], token.line))
        self.tokens = out

    def learn_variable(self, i, after):
        parsed = d.parse_variable(self.tokens, i, self.path, self.serial())
        if parsed and parsed[0] not in after:
            after[parsed[0]] = parsed[1]

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
            if token.kind == "word" and token.text in d.ATTRIBUTE_WORDS and t.is_mark(self.tokens, after, "("):
                i = t.matching(self.tokens, after) + 1
                continue
            out.append(token)
            i += 1
        return out

    def addresses_of_kernels(self):
        """Registers kernel<arguments> outside launches: its address is taken, so the instantiation must be in the image."""
        i = 0
        while i < len(self.tokens):
            token = self.tokens[i]
            if (token.kind == "word" and self.shared["kernels"].get(token.text) and id(token) not in self.shared["names"]):
                open_angle = t.skip_quiet(self.tokens, i + 1)
                end = t.angle_end(self.tokens, open_angle) if t.is_mark(self.tokens, open_angle, "<") else None
                if end is not None and not t.is_mark(self.tokens, t.skip_quiet(self.tokens, end + 1), "<<<"):
                    self.register_address(i, end)
            i += 1

    def register_address(self, name, end):
        start = name
        while t.is_mark(self.tokens, start - 1, "::"):
            start -= 2 if t.is_word(self.tokens, start - 2) else 1
        ampersand = t.skip_quiet(self.tokens, start - 1, -1)
        text = f"{DEVICE}::Registered<(&{t.text_of(self.tokens[start : end + 1])})>()"
        first = start
        if t.is_mark(self.tokens, ampersand, "&"):
            before = t.skip_quiet(self.tokens, ampersand - 1, -1)
            if not t.is_word(self.tokens, before) or self.tokens[before].text == "return":
                first = ampersand
        line = self.tokens[start].line
        self.tokens[first : end + 1] = [t.Token("appended", text, line)]

    def launches_in(self, tokens):
        at = 0
        while at < len(tokens):
            if t.is_mark(tokens, at, "<<<"):
                at = self.launch(tokens, at)
            at += 1

    def launch(self, tokens, at):
        line = tokens[at].line
        end = self.configuration_end(tokens, at)
        open_paren = t.skip_quiet(tokens, end + 1)
        close = t.matching(tokens, open_paren) if t.is_mark(tokens, open_paren, "(") else None
        start, name = self.kernel_expression(tokens, at)
        if close is None or start is None:
            raise t.Unsupported(self.path, line, "cannot read this kernel launch")
        configuration = t.text_of(tokens[at + 1 : end])
        arguments = tokens[open_paren : close + 1]
        expression = t.text_of(tokens[start:at]).strip()
        if name is not None and tokens[name].text in self.shared["kernels"]:
            prefix = t.text_of(tokens[start:name])
            rest = t.text_of(tokens[name + 1 : at]).strip()
            identity = f"decltype({prefix}spillway_kernel_of_{tokens[name].text}{rest}{t.text_of(arguments)})"
            head = f"{DEVICE}::Launch<{' '.join(identity.split())}>({configuration})"
        else:
            head = f"{DEVICE}::LaunchPointer({expression}, {configuration})"
        tokens[start : end + 1] = [t.Token("appended", head, line)]
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
        """(start, index of the kernel's name or None) of the expression before `<<<`."""
        i = t.skip_quiet(tokens, at - 1, -1)
        name = None
        if 0 <= i and tokens[i].kind == "mark" and set(tokens[i].text) == {">"}:
            i = t.angle_start(tokens, i)
            i = None if i is None else t.skip_quiet(tokens, i - 1, -1)
        if i is None or i < 0:
            return None, None
        if tokens[i].kind == "word":
            name = i
        elif t.is_mark(tokens, i, ")") or t.is_mark(tokens, i, "]"):
            i = t.matching_before(tokens, i)
            before = t.skip_quiet(tokens, i - 1, -1)
            i = before if t.is_word(tokens, before) else i
        while True:
            before = t.skip_quiet(tokens, i - 1, -1)
            joined = before >= 0 and tokens[before].kind == "mark" and tokens[before].text in ("::", "->", ".")
            if not joined:
                return i, name
            owner = t.skip_quiet(tokens, before - 1, -1)
            if tokens[before].text != "::":
                name = None
            if owner >= 0 and tokens[owner].kind == "mark" and set(tokens[owner].text) == {">"}:
                owner = t.skip_quiet(tokens, t.angle_start(tokens, owner) - 1, -1)
            i = owner if t.is_word(tokens, owner) else before

    def directives(self):
        """Rewrites launches inside macros."""
        for token in self.tokens:
            if token.kind == "directive" and "<<<" in token.text:
                inner = t.split(token.text, token.line)
                self.launches_in(inner)
                token.text = t.text_of(inner)



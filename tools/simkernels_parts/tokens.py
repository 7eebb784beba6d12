"""Splits CUDA C++ source into tokens; joined, the tokens are exactly the source."""
import re

TOKEN = re.compile(
    r"""(?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)
      | (?P<raw>(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)")
      | (?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*")
      | (?P<char>(?:u8|[uUL])?'(?:\\.|[^'\\\n])+')
      | (?P<space>(?:\s|\\\n)+)
      | (?P<word>[A-Za-z_]\w*)
      | (?P<number>\.?\d(?:[eEpP][+-]|'(?=\w)|[\w.])*)
      | (?P<mark2><<<|>>>|::|->|\#\#|<<|>>|.)""",
    re.X | re.S,
)
KINDS = ("comment", "raw", "string", "char", "space", "word", "number", "mark2")
OPENING = {"(": ")", "[": "]", "{": "}"}
CLOSING = {")": "(", "]": "[", "}": "{"}


class Unsupported(Exception):
    """Source code that the simulator cannot run, with its place."""

    def __init__(self, path, line, what):
        super().__init__(f"{path}:{line}: {what}")


class Token:
    __slots__ = ("kind", "text", "line", "where")

    def __init__(self, kind, text, line):
        self.kind, self.text, self.line = kind, text, line
        self.where = ""  # in which functions: "device", "both" device and host; "" elsewhere

    @property
    def quiet(self):
        return self.kind in ("space", "comment")

    def __repr__(self):
        return f"{self.text!r}@{self.line}"


def split(text, line=1):
    """Tokens of `text`; its first line has number `line`."""
    tokens, at = [], 0
    while at < len(text):
        match = TOKEN.match(text, at)
        kind = next(kind for kind in KINDS if match.group(kind) is not None)
        tokens.append(Token("mark" if kind == "mark2" else kind, match.group(0), line))
        line += match.group(0).count("\n")
        at = match.end()
    return tokens


def text_of(tokens):
    return "".join(token.text for token in tokens)


def skip_quiet(tokens, at, step=1):
    """Index of the nearest token from `at` on (backwards for step -1) that is neither space nor comment."""
    while 0 <= at < len(tokens) and tokens[at].quiet:
        at += step
    return at


def is_mark(tokens, at, text):
    return 0 <= at < len(tokens) and tokens[at].kind == "mark" and tokens[at].text == text


def is_word(tokens, at, text=None):
    return 0 <= at < len(tokens) and tokens[at].kind == "word" and (text is None or tokens[at].text == text)


def matching(tokens, at):
    """Index of the bracket that closes the one at `at`; None when there is none."""
    depth = 0
    for i in range(at, len(tokens)):
        if tokens[i].kind != "mark":
            continue
        if tokens[i].text in OPENING:
            depth += 1
        elif tokens[i].text in CLOSING:
            depth -= 1
            if depth == 0:
                return i
    return None


def matching_before(tokens, at):
    """Index of the bracket that opens the one at `at`; None when there is none."""
    depth = 0
    for i in range(at, -1, -1):
        if tokens[i].kind != "mark":
            continue
        if tokens[i].text in CLOSING:
            depth += 1
        elif tokens[i].text in OPENING:
            depth -= 1
            if depth == 0:
                return i
    return None


def angle_end(tokens, at):
    """Index of the token that closes the template list opened at `at`; None for a comparison."""
    depth = 0
    i = at
    while i < len(tokens):
        token = tokens[i]
        if token.kind == "mark":
            if token.text in OPENING:
                i = matching(tokens, i)
                if i is None:
                    return None
            elif token.text == "<":
                depth += 1
            elif set(token.text) == {">"}:
                depth -= len(token.text)
                if depth <= 0:
                    return i if depth == 0 else None
            elif token.text in (";", "<<<") or token.text in CLOSING:
                return None
        i += 1
    return None


def angle_start(tokens, at):
    """Index of the `<` that opens the template list closed at `at`; None when there is none."""
    depth = 0
    i = at
    while i >= 0:
        token = tokens[i]
        if token.kind == "mark":
            if token.text in CLOSING:
                i = matching_before(tokens, i)
                if i is None:
                    return None
            elif set(token.text) == {">"}:
                depth += len(token.text)
            elif token.text == "<":
                depth -= 1
                if depth == 0:
                    return i
            elif token.text in (";", "{", "}"):
                return None
        i -= 1
    return None


def split_commas(tokens):
    """The token lists between top-level commas."""
    parts, part, i, depth = [], [], 0, 0
    while i < len(tokens):
        token = tokens[i]
        if token.kind == "mark" and token.text in OPENING:
            end = matching(tokens, i)
            end = len(tokens) - 1 if end is None else end
            part += tokens[i : end + 1]
            i = end + 1
            continue
        if token.kind == "mark" and token.text == "<":
            end = angle_end(tokens, i)
            if end is not None:
                part += tokens[i : end + 1]
                i = end + 1
                continue
        if token.kind == "mark" and token.text == ",":
            parts.append(part)
            part = []
        else:
            part.append(token)
        i += 1
    parts.append(part)
    return parts if any(text_of(p).strip() for p in parts) else []

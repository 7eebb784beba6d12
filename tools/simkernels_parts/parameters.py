"""A kernel's parameter list: as the closure repeats it, and the names that the launch passes on."""
from . import tokens as t

ATTRIBUTE_WORDS = {"__launch_bounds__", "__attribute__", "__maxnreg__", "__cluster_dims__", "__block_size__", "alignas",
                   "__align__", "decltype", "__declspec"}
TYPE_WORDS = {"class", "struct", "enum", "typename", "auto", "int", "unsigned", "long", "short", "char", "bool", "signed",
              "const", "volatile", "float", "double", "void", "__restrict__", "__restrict", "restrict", "__grid_constant__",
              "__int128"}
NOT_A_TYPE = {"const", "volatile", "class", "struct", "enum", "typename", "__grid_constant__"}


class Declarator:
    """One parameter: a run of tokens between commas and preprocessor lines."""

    def __init__(self, tokens, first, end):
        self.first = first
        self.equals = next((i for i in top_level(tokens, first, end) if t.is_mark(tokens, i, "=")), end)
        loud = [i for i in top_level(tokens, first, self.equals) if not tokens[i].quiet]
        self.is_pack = any(tokens[i].text == "." for i in loud)
        self.name, self.insert_at = None, (last_of_group(tokens, loud[-1]) + 1 if loud else None)
        self.loud = loud
        if loud:
            self.find_name(tokens)

    def find_name(self, tokens):
        group = next((i for i in self.loud if t.is_mark(tokens, i, "(")
                      and not (t.is_word(tokens, t.skip_quiet(tokens, i - 1, -1))
                               and tokens[t.skip_quiet(tokens, i - 1, -1)].text in ATTRIBUTE_WORDS)), None)
        inside = t.skip_quiet(tokens, group + 1) if group is not None else None
        if inside is not None and tokens[inside].text in ("*", "&"):
            self.name_in_group(tokens, inside, t.matching(tokens, group))
            return
        bracket = next((k for k, i in enumerate(self.loud) if t.is_mark(tokens, i, "[")), len(self.loud))
        words = self.loud[:bracket]
        if bracket < len(self.loud):
            self.insert_at = self.loud[bracket]
        last, before = words[-1], words[:-1]
        is_typed = any(tokens[i].text not in NOT_A_TYPE for i in before)
        if (t.is_word(tokens, last) and tokens[last].text not in TYPE_WORDS and is_typed
                and tokens[before[-1]].text != "::"):
            self.name = tokens[last].text

    def name_in_group(self, tokens, first, close):
        words = [i for i in range(first, close) if t.is_word(tokens, i) and tokens[i].text not in TYPE_WORDS]
        if words:
            self.name = tokens[words[0]].text
        else:
            self.insert_at = first + 1


def last_of_group(tokens, i):
    """The last token of the template list that `i` opens; of others `i` itself."""
    close = t.angle_end(tokens, i) if t.is_mark(tokens, i, "<") else None
    return i if close is None else close


def top_level(tokens, first, end):
    """Indices from `first` on, without the insides of brackets and template lists."""
    i = first
    while i < end:
        yield i
        if tokens[i].kind == "mark" and tokens[i].text in t.OPENING:
            i = t.matching(tokens, i)
            continue
        close = last_of_group(tokens, i)
        i = (close if close < end else i) + 1


class Parameters:
    """The tokens between a kernel's parentheses."""

    def __init__(self, tokens, first, end):
        self.tokens = tokens
        self.pieces = []  # directives and declarators, in their order
        start = first
        for i in [*top_level(tokens, first, end), end]:
            if i < end and not (t.is_mark(tokens, i, ",") or tokens[i].kind == "directive"):
                continue
            self.add(start, i)
            if i < end and tokens[i].kind == "directive":
                self.pieces.append(tokens[i])
            start = i + 1
        self.has_directives = any(isinstance(piece, t.Token) for piece in self.pieces)
        self.name_all()

    def add(self, first, end):
        declarator = Declarator(self.tokens, first, end)
        if declarator.loud and t.text_of(self.tokens[i] for i in declarator.loud) != "void":
            declarator.end = end
            self.pieces.append(declarator)

    def name_all(self):
        self.insertions = {}
        for i, piece in enumerate(self.pieces):
            if isinstance(piece, Declarator) and piece.name is None:
                piece.name = f"spillway_parameter_{i}"
                self.insertions[piece.insert_at] = f" {piece.name}"

    def with_commas(self, text_of_declarator, leading):
        """The pieces' texts, a comma before each declarator but the first, or before all."""
        out, comma = [], leading
        for piece in self.pieces:
            if isinstance(piece, t.Token):
                out.append(f"\n{piece.text}\n")
            else:
                out.append((", " if comma else "") + text_of_declarator(piece))
                comma = True
        return "".join(out)

    def names(self):
        return self.with_commas(lambda piece: piece.name + ("..." if piece.is_pack else ""), True)

    def declared(self):
        """The list without default arguments, every parameter named."""
        return self.with_commas(self.declaration, False)

    def declaration(self, piece):
        out = []
        for i in range(piece.first, piece.equals):
            if i in self.insertions:
                out.append(self.insertions[i])
            out.append(" " if self.tokens[i].quiet else self.tokens[i].text)
        if piece.equals in self.insertions:
            out.append(self.insertions[piece.equals])
        return " ".join("".join(out).split())

#!/usr/bin/env python3
"""Checks the messages that pages quote: each line `> text` consists of texts that the sources hold.

`...` in such a line stands for what differs. Prints one line per text that no source has, `file:line: what`; the exit code is then 1.
"""
import re
import sys

import source_tree

LITERALS = re.compile(r'"((?:[^"\\\n]|\\.)*)"((?:\s*"(?:[^"\\\n]|\\.)*")*)')
MORE = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


# Neighbouring literals are one text, as for the compiler.
def texts_in(source):
    return ["".join([first, *MORE.findall(rest)]) for first, rest in LITERALS.findall(source)]


def product_texts():
    sources = [path for kind in (".cpp", ".h") for path in source_tree.tracked_files(kind)
               if path.parts[0] in ("agent", "base", "cli", "deploy", "interposer", "protocol")]
    return "\n".join(text for path in sources for text in texts_in((source_tree.ROOT / path).read_text(encoding="utf-8")))


def quotations():
    for page in source_tree.tracked_files(".md"):
        for number, line in enumerate(source_tree.read_lines(page), start=1):
            if line.startswith("> "):
                yield page, number, [part.strip() for part in line[2:].split("...") if part.strip(" ,;.")]


def main():
    texts = product_texts()
    quoted = list(quotations())
    found = [(page, number, part) for page, number, parts in quoted for part in parts if part not in texts]
    for page, number, part in found:
        print(f"{page}:{number}: no source says: {part}")
    print(f"{len(quoted)} quoted messages, {len(found)} texts that no source has")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

"""Shortens a program that computes something else under a budget: drops operations while the difference remains."""

import re
import time

LIMIT_S = 60


def shrink(bench, seeds, library, budget_bytes):
    """The shortest run of seeds, and the operations of its last one, that suffice for the difference in the last seed.

    Returns (seeds, kept); None when even all of `seeds` in one process do not differ again.
    """

    def differs(some_seeds, kept=None):
        bare = bench.line(some_seeds, kept=kept)
        return " digest " in bare and bare != bench.line(some_seeds, library, budget_bytes, kept)

    needed = next((seeds[-count:] for count in lengths(len(seeds)) if differs(seeds[-count:])), None)
    if needed is None:
        return None
    numbers = {int(number) for number in re.findall(r"^  #(\d+)", bench.program_text(seeds[-1]), re.MULTILINE)}
    return needed, drop_parts(sorted(numbers), lambda kept: differs(needed, kept), time.monotonic() + LIMIT_S)


def lengths(longest):
    """1, 2, 4, ... and the longest."""
    count = 1
    while count < longest:
        yield count
        count *= 2
    yield longest


def drop_parts(kept, differs, deadline_s):
    """Drops ever smaller parts of the list as long as what is left still `differs`."""
    part = max(1, len(kept) // 2)
    while time.monotonic() < deadline_s:
        start = 0
        dropped = False
        while start < len(kept) and time.monotonic() < deadline_s:
            shorter = kept[:start] + kept[start + part:]
            if shorter and differs(shorter):
                kept, dropped = shorter, True
            else:
                start += part
        if part == 1 and not dropped:
            break
        part = max(1, part // 2)
    return kept

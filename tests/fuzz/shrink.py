"""Shortens a program that computes something else under a budget: drops operations while the difference remains."""

import re
import time

LIMIT_S = 90


def shrink(bench, seed, library, budget_bytes):
    """The numbers of operations that suffice for the difference; None when the seed alone does not differ."""

    def differs(kept):
        bare = bench.line(seed, kept=kept)
        if "failed" in bare or "ended with" in bare:
            return False
        return bare != bench.line(seed, library, budget_bytes, kept)

    numbers = {int(number) for number in re.findall(r"^  #(\d+)", bench.program_text(seed), re.MULTILINE)}
    kept = sorted(numbers)
    if not differs(kept):
        return None
    return drop_parts(kept, differs, time.monotonic() + LIMIT_S)


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

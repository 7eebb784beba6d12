"""Prints trials: a table for one program, a line each for several, and what was lacking in how many programs."""
import collections
import dataclasses

from .trial import DIFFERS, NOT_RUN, SAME

GIB = 1 << 30
MOST_DIFFERENCES_SHOWN = 4  # per run
MOST_LACKS_SHOWN = 12  # per program; --json has all


def size(size_bytes):
    for unit, name in ((GIB, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size_bytes >= unit:
            return f"{size_bytes / unit:.2f} {name}"
    return f"{size_bytes} B" if size_bytes else "0"


def print_columns(header, rows):
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    for row in [header, *rows]:
        print("  " + "  ".join(cell.ljust(width) if i == 0 else cell.rjust(width)
                               for i, (cell, width) in enumerate(zip(row, widths))).rstrip())


def row_cells(row):
    if row.skipped:
        return [row.label, size(row.budget_bytes), "-", "-", "-", "-", "-"]
    slow_down = f"{row.slow_down:.2f}x" if row.slow_down else "-"
    return [row.label, size(row.budget_bytes) if row.budget_bytes else "-", size(row.held_bytes), size(row.offloaded_bytes),
            size(row.restored_bytes), slow_down, row.cell()]


def print_details(trial, with_skipped=True):
    for row in trial.rows:
        for said in [row.skipped] * with_skipped if row.skipped else row.differences[:MOST_DIFFERENCES_SHOWN]:
            print(f"    {row.label}: {said}")
        for note in row.notes:
            print(f"    {row.label}: {note}")
    for note in trial.notes:
        print(f"    {note}")
    for lack in trial.lacks[:MOST_LACKS_SHOWN]:
        print(f"    the {lack.by} lacks {lack.line()}")
    if len(trial.lacks) > MOST_LACKS_SHOWN:
        print(f"    and {len(trial.lacks) - MOST_LACKS_SHOWN} more")


def print_one(trial):
    print(f"{trial.name}: {trial.verdict}" + (f": {trial.reason}" if trial.reason else ""))
    if trial.rows:
        bare = ["bare", "-", size(trial.peak_bytes), "-", "-", "1.00x", "-"]
        print_columns(["", "budget", "held at most", "moved out", "moved in", "slow-down", "as bare"],
                      [bare, *map(row_cells, trial.rows)])
    print_details(trial)


class Line:
    """One line per program, with fixed columns so that lines can be printed as trials end."""

    def __init__(self, names, shares):
        self.width = max(map(len, names))
        self.labels = ["no budget", *(f"{share} %" for share in shares), "smallest"]

    def print_header(self):
        print(f"{'program':<{self.width}}  {'peak':>10}  " + "  ".join(f"{label:>15}" for label in self.labels))

    def print(self, trial):
        cells = {row.label: self.cell(row) for row in trial.rows}
        tail = "  ".join(f"{cells.get(label, ''):>15}" for label in self.labels) if cells else f"{trial.verdict}: {trial.reason}"
        print(f"{trial.name:<{self.width}}  {size(trial.peak_bytes) if trial.peak_bytes else '-':>10}  {tail}".rstrip())
        print_details(trial, with_skipped=False)

    @staticmethod
    def cell(row):
        return row.cell() + (f" {row.slow_down:.2f}x" if row.slow_down and not row.skipped else "")


def print_summary(trials):
    verdicts = collections.Counter(trial.verdict for trial in trials)
    shown = ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in (SAME, DIFFERS, NOT_RUN) if verdicts[verdict])
    print(f"\n{len(trials)} programs: {shown}")
    programs = collections.defaultdict(list)
    for trial in trials:
        for key in {(lack.by, lack.what) for lack in trial.lacks}:
            programs[key].append(trial.name)
    for (by, what), names in sorted(programs.items(), key=lambda item: (-len(item[1]), item[0])):
        print(f"  {len(names):>3}  the {by} lacks {what}: {', '.join(names[:4])}{', ...' if len(names) > 4 else ''}")
    print("\nslow-down is of simulated time against the bare run")


def as_json(trials):
    return [dataclasses.asdict(trial) for trial in trials]

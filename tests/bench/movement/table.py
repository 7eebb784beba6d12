"""The table of slow-downs: the text of each cell, the broken promises, and advice about them.

The promise: at half the peak and above, at most 5 % slower by plan; below, at most 25 %, or the
lower bound that forbids it. The plan's prediction is within 5 % of the measurement.
"""
import re

OWN = "spillway"
MOST_SLOWER = ((50, 5.0), (0, 25.0))  # from this share of the peak on: per cent
MOST_OFF = 5.0  # error of a prediction, per cent of the measurement
BELOW_BOUND = 1.0  # per cent of a step: a run faster by more disproves the bound
FITS_SLOWER = 1.0
PLANNED_BY, SECOND_PLANNED_BY = 5, 2
GIB = 1 << 30
MAPPING_CALLS = ("vmm_creates", "vmm_maps", "vmm_set_accesses", "vmm_unmaps", "vmm_releases")


def target(percent):
    return next(most for least_percent, most in MOST_SLOWER if percent >= least_percent)


class SeriesTable:
    """All results of one network on one profile."""

    def __init__(self, series):
        self.series = series
        self.bare_ns = series.bare.step_ns
        self.cells = {cell: result for cell, result in series.cells.items() if result is not None}
        self.own = {percent: result for (percent, policy), result in self.cells.items() if policy == OWN}

    # Figures of a cell.

    def slower(self, nanoseconds):
        """In per cent of the bare step."""
        return 100.0 * (nanoseconds / self.bare_ns - 1)

    def steps_per_iteration(self):
        """What is learned as one iteration may be several steps. A plan that came late was not measured."""
        measured = (one.learning.get("measured_iteration_ns", 0) / one.step_ns for one in self.own.values() if one.ended_well)
        return max(1, round(max(measured, default=1)))

    def learned(self, result, name):
        """The report's figure for an iteration, as a slow-down; None without a plan."""
        value_ns = result.learning.get(name, 0) / self.steps_per_iteration()
        return self.slower(value_ns) if value_ns else None

    def off(self, result):
        """The error of the prediction, in per cent of the measurement."""
        predicted_ns = result.learning.get("predicted_iteration_ns", 0) / self.steps_per_iteration()
        return 100.0 * (predicted_ns / result.step_ns - 1) if result.ended_well and predicted_ns else None

    def verdict(self, percent):
        result = self.own[percent]
        if not result.ended_well:
            return f"missed: {result.why}"
        if self.slower(result.step_ns) <= target(percent):
            return "met"
        bound = self.learned(result, "lower_bound_ns")
        if bound is None:
            return why_no_plan(result)
        return "bound forbids" if bound > target(percent) else "missed"

    # Text.

    def cell_text(self, result):
        if not result.ended_well:
            return "-"
        return f"{self.slower(result.step_ns):.1f}{'' if self.series.same_bytes(result) else ' !'}"

    def row(self, percent):
        policies = [cell[1] for cell in self.series.cells if cell[0] == percent]
        texts = {policy: self.cell_text(self.cells[percent, policy]) if (percent, policy) in self.cells else ""
                 for policy in policies}
        if percent not in self.own:
            return [f"{percent} %", *texts.values()]
        own = self.own[percent]
        return [f"{percent} %", *texts.values(), number(self.learned(own, "predicted_iteration_ns")), number(self.off(own), "+.1f"),
                number(self.learned(own, "lower_bound_ns")), f"{target(percent):.0f}", self.verdict(percent),
                str(own.learning.get("planned_at_iteration") or ""), calls_per_step(own), gibibytes_per_step(own)]

    def text(self):
        series = self.series
        policies = list(dict.fromkeys(policy for _, policy in series.cells))
        lines = [f"## {series.network}, {series.profile}", "", f"`{' '.join(series.bare_command)}`: {self.bare_ns / 1e6:.1f} ms per "
                 f"step bare, peak {series.peak_bytes / GIB:.2f} GiB (simulated).", ""]
        columns = ["budget", *policies]
        if self.own:
            columns += ["predicted", "off", "bound", "target", "verdict", "planned at", "calls", "GiB out / in"]
        lines += [row_text(columns), row_text(["---"] * len(columns))]
        lines += [row_text(self.row(percent)) for percent in dict.fromkeys(percent for percent, _ in self.cells)]
        return "\n".join([*lines, "", self.about_learning()])

    def about_learning(self):
        fits = self.series.fits
        slowest_ns = max(fits.times_ms) * 1e6
        text = (f"With all its memory, always learning: {self.slower(fits.step_ns):.2f} % slower, {moved_bytes(fits)} bytes moved, the "
                f"slowest step {self.slower(slowest_ns):.1f} %.")
        second = self.series.second
        if second:
            text += f" A second run at 50 % is planned at iteration {second.learning.get('planned_at_iteration') or 'never'}."
        return text + f" An iteration is {self.steps_per_iteration()} step(s)."

    def problems(self):
        """The broken promises, as texts."""
        where = f"{self.series.network} on {self.series.profile}"
        fits, second = self.series.fits, self.series.second
        if self.slower(fits.step_ns) >= FITS_SLOWER or moved_bytes(fits) or not self.series.same_bytes(fits):
            yield f"{where}: a job that fits is slower, moves bytes or computes others"
        for (percent, policy), result in self.cells.items():
            if not result.ended_well:
                yield f"{where} at {percent} % with {policy} fails: {result.why}"
            elif not self.series.same_bytes(result):
                yield f"{where} at {percent} % with {policy} computes other bytes"
        for percent, result in self.own.items():
            yield from (f"{where} at {percent} %: {what}" for what in self.broken_promises(percent, result))
        if second and not 0 < second.learning.get("planned_at_iteration", 0) <= SECOND_PLANNED_BY:
            yield f"{where}: a second run is not planned by iteration {SECOND_PLANNED_BY}"

    def broken_promises(self, percent, result):
        verdict = self.verdict(percent)
        if verdict.startswith("missed"):
            yield verdict
        off = self.off(result)
        if off is not None and abs(off) > MOST_OFF:
            yield f"the prediction is {off:+.1f} % off"
        if result.learning.get("planned_at_iteration", 0) > PLANNED_BY:
            yield f"planned at iteration {result.learning['planned_at_iteration']} only"
        for policy, other in self.others(percent):
            if result.ended_well and other.step_ns < 0.99 * result.step_ns:
                yield f"{policy} is faster: {self.slower(other.step_ns):.1f} % slower than bare, ours {self.slower(result.step_ns):.1f}"
        beaten_by = self.bound_beaten_by(percent)
        if beaten_by:
            yield f"{' and '.join(beaten_by)} went below the bound"

    def others(self, percent):
        """Policies and their results, where they succeeded."""
        return [(policy, result) for (at, policy), result in self.cells.items() if at == percent and result.ended_well]

    def bound_beaten_by(self, percent):
        bound = self.learned(self.own[percent], "lower_bound_ns")
        if bound is None:
            return []
        return [policy for policy, result in self.others(percent) if self.slower(result.step_ns) < bound - BELOW_BOUND]

    def figures(self):
        """Everything, for --json."""
        series = self.series
        return [{
            "network": series.network, "profile": series.profile, "bare_step_ns": self.bare_ns, "peak_bytes": series.peak_bytes,
            "percent": percent, "policy": policy, "step_ns": result.step_ns if result.ended_well else 0,
            "same_bytes": series.same_bytes(result), "why": result.why, "times_ms": result.times_ms, "report": result.report,
            "statistics": result.statistics,
        } for (percent, policy), result in self.cells.items()]


def why_no_plan(result):
    """`bound forbids` where a single operation's memory exceeds the budget."""
    why = result.learning.get("not_planned_because", "") or "no plan"
    match = re.search(r"one operation touches (\d+) bytes", why)
    return f"bound forbids: one operation needs {int(match[1]) / GIB:.2f} GiB" if match else f"missed: {why}"


def number(value, form=".1f"):
    return "" if value is None else format(value, form)


def row_text(texts):
    return "| " + " | ".join(texts) + " |"


def moved_bytes(result):
    return sum(result.report.get(name, 0) for name in ("offloaded_bytes", "restored_bytes"))


def calls_per_step(result):
    """Calls of cuMemMap, cuMemUnmap, cuMemSetAccess, cuMemCreate and cuMemRelease, over the whole
    run."""
    return str(round(sum(result.statistics.get(name, 0) for name in MAPPING_CALLS) / result.steps))


def gibibytes_per_step(result):
    """Bytes copied out of the device and back, over the whole run."""
    return " / ".join(f"{result.report.get(name, 0) / result.steps / GIB:.2f}" for name in ("offloaded_bytes", "restored_bytes"))


def summary(tables):
    verdicts = [each.verdict(percent) for each in tables for percent in each.own]
    offs = [off for each in tables for result in each.own.values() if (off := each.off(result)) is not None]
    runs = [(each, result) for each in tables for result in each.cells.values()]
    same = sum(each.series.same_bytes(result) for each, result in runs)
    counts = {name: sum(verdict.startswith(name) for verdict in verdicts) for name in ("met", "bound forbids", "missed")}
    return (f"Of {len(verdicts)} targets, {counts['met']} are met, {counts['bound forbids']} are ruled out by the bound and "
            f"{counts['missed']} are missed. {sum(abs(off) <= MOST_OFF for off in offs)} of {len(offs)} predictions are within {MOST_OFF:.0f} % of the "
            f"measurement. {same} of {len(runs)} runs compute the same bytes as the bare run.{beaten_bounds(tables)}")


def beaten_bounds(tables):
    """A sentence on runs that were faster than the model's lower bound, or nothing."""
    cells = [f"{each.series.network} on {each.series.profile} at {percent} % ({', '.join(policies)})" for each in tables
             for percent in each.own if (policies := each.bound_beaten_by(percent))]
    return f" Below the bound, which is none there, went {'; '.join(cells)}." if cells else ""


HEAD = """# Training below its memory peak

All figures are simulated: the simulated GPU's virtual clock, [compute mode `tags`](simulation.md#networks-at-real-size). They say which way of
moving memory is better, not how fast a GPU is. Made by `tests/bench/movement/movement.py --page docs/movement.md` at commit {commit}.

Each cell is the slow-down of a training step against the bare run, in per cent. The budget is a share of the job's memory peak. `-` marks a run
that ended with an error, `!` a run with other losses or weights.

| columns | show |
| --- | --- |
| reactive | no plan: memory moves on demand |
| vdnn-all, autoswap, delta | the plans of these papers' strategies, run live in the same executor |
| spillway | our own plan; all columns to its right belong to it |
| predicted, off | the slow-down that the plan predicts, and how far it is off the measured one |
| bound | what no plan can beat, by the model's prices |
| target, verdict | the slow-down that is allowed, and whether it is met |
| planned at | the iteration from which there was a plan |
| calls, GiB out / in | mapping calls and copied data per step of the whole run, its unplanned beginning included |
"""


def page(tables, commit):
    return "\n\n".join([HEAD.format(commit=commit).strip(), summary(tables), *(each.text() for each in tables)]) + "\n"

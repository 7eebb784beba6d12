"""Compares what two runs left: output, files and exit code, without times, rates, addresses and process ids."""
import difflib
import hashlib
import re

NUMBER = r"[-+]?\d[\d,]*(?:\.\d*)?(?:[eE][-+]?\d+)?"
TIME_UNITS = r"(?:n|u|µ|m|micro|milli|nano)?s(?:ec(?:ond)?s?)?|minutes?|min|hours?|cycles?|clocks?|ticks?"
RATE_UNITS = (r"[kKMGT]?i?(?:B|Bytes?|bits?|F(?:LOP|lop)s?|OPS|Hz|Pixels?|pixels?|[eE]lements?|vertices|options?|samples?|steps?|"
              r"iterations?|numbers?)?\s*(?:/|per |p)\s*(?:s(?:ec(?:ond)?)?|[Ii]teration)\b|[kKMGT](?:FLOPS?|flops?|FLOP/s|Flop/s|"
              r"i?B/s|bps|iB/s)|FPS|fps|[kKMGT]?Hz|[a-z]+/s(?:ec)?\b")
# In a line that speaks of time or speed every decimal number may be one: `Elapsed 1.23`, `GPU 0.5 vs CPU 7.1 (speed-up)`.
SPEAKS_OF_TIME = re.compile(r"\b(?:time|times|timing|timer|elapsed|took|duration|latency|throughput|bandwidth|speed-?up|faster|"
                            r"slower|performance|perf|fps|clocks?|cycles?|sec|seconds|ms|msec|usec|milliseconds?|[GMT]i?B/s|"
                            r"[GMT]?flops?/?s?|\w+/s(?:ec)?)\b", re.I)
MASKS = (
    (re.compile(r"\b0x[0-9a-fA-F]+\b"), "<address>"),
    (re.compile(r"\b(?:\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d)\b"), "<date>"),
    (re.compile(rf"{NUMBER}\s*(?:{RATE_UNITS})", re.I), "<rate>"),
    (re.compile(rf"{NUMBER}\s*\(?\b(?:{TIME_UNITS})\b\)?", re.I), "<time>"),
    (re.compile(r"\b\d+(?= (?:iterations|polls|times|loops) while )", re.I), "<polls>"),  # while the device works
    (re.compile(r"\b(pid|process|thread id|tid)([ =:]+)\d+", re.I), r"\1\2<id>"),
)
# A trainer prints its loss in the line that states how long the step took.
DECIMAL = re.compile(r"(?P<result>\b(?:loss|accuracy|norm|checksum)[\s:=]+[-+]?\d+\.\d+(?:[eE][-+]?\d+)?)|"
                     r"[-+]?\d+\.\d+(?:[eE][-+]?\d+)?|\binf\b|\bnan\b", re.I)
WHOLE_NUMBER = re.compile(r"\d+")
FROM_SIMULATOR = "simulated GPU: "  # its own lines on standard error; they are read as lacks and violations


def mask(line, pid, own=()):
    for pattern, replacement in MASKS:
        line = pattern.sub(replacement, line)
    for pattern in own:
        line = pattern.sub("<masked>", line)
    if pid and pid > 9:
        line = re.sub(rf"\b{pid}\b", "<id>", line)
    if SPEAKS_OF_TIME.search(line) or "<rate>" in line or "<time>" in line:
        line = DECIMAL.sub(lambda match: match["result"] or "<number>", line)
    return " ".join(line.split())  # padding changes with the width of a masked number


def lines_of(content, pid, own=()):
    """The masked lines of a text; of other bytes one line that stands for all."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = None
    if text is None or "\0" in text:
        return [f"<{len(content)} bytes, SHA-256 {hashlib.sha256(content).hexdigest()}>"]
    return [mask(line, pid, own) for line in text.splitlines() if not line.startswith(FROM_SIMULATOR)]


def says_budget(expected, found, budget_bytes):
    """Whether the lines differ only in how large they say the device is: under a budget, as large as that."""
    if not budget_bytes or WHOLE_NUMBER.sub("#", expected) != WHOLE_NUMBER.sub("#", found):
        return False
    sizes = {str(budget_bytes >> shift) for shift in (0, 10, 20)}
    pairs = zip(WHOLE_NUMBER.findall(expected), WHOLE_NUMBER.findall(found))
    return expected != found and all(before == after or after in sizes for before, after in pairs)


class Stable:
    """The part of one stream that is the same in two bare runs, and the question whether another run has it too."""

    def __init__(self, first, second):
        self.any_order = first != second and sorted(first) == sorted(second)
        self.expected = sorted(first) if self.any_order else first
        self.unstable = set() if self.any_order else {i for i, pair in enumerate(zip(first, second)) if pair[0] != pair[1]}
        self.comparable = len(first) == len(second)

    def note(self, what):
        """What to say of a program that does not repeat itself; empty where it does."""
        if not self.comparable:
            return f"{what}: two bare runs differ in their number of lines, so it is not compared"
        if self.any_order:
            return f"{what}: two bare runs have the same lines in another order, so order is not compared"
        if self.unstable:
            return f"{what}: {len(self.unstable)} of {len(self.expected)} lines differ between two bare runs and are not compared"
        return ""

    def budget_lines(self, lines, budget_bytes):
        """The numbers of the lines that say how large the device is."""
        return [i + 1 for i, pair in enumerate(zip(self.expected, lines)) if says_budget(*pair, budget_bytes)]

    def difference(self, lines, budget_bytes=None):
        """The first difference in words, lines that say the budget aside; empty where the run is the same."""
        if not self.comparable:
            return ""
        lines = sorted(lines) if self.any_order else lines
        for i, (expected, found) in enumerate(zip(self.expected, lines)):
            if i not in self.unstable and expected != found and not says_budget(expected, found, budget_bytes):
                return f"line {i + 1}: {shorten(expected)} became {shorten(found)}"
        if len(lines) != len(self.expected):
            extra = [line for line in difflib.ndiff(self.expected, lines) if line[:1] in "+-"][:1]
            return f"{len(self.expected)} lines became {len(lines)}: {shorten(extra[0]) if extra else ''}"
        return ""


def shorten(text):
    return repr(text if len(text) <= 90 else text[:87] + "...")


class Baseline:
    """What two bare runs agree on."""

    def __init__(self, first, second, own=()):
        self.own = own
        self.exit_codes = {first.exit_code, second.exit_code}
        self.files = set(first.files) & set(second.files)
        self.unsure_files = set(first.files) ^ set(second.files)  # written by one of the two runs
        streams = self.streams(first), self.streams(second)
        self.stable = {name: Stable(streams[0][name], streams[1][name]) for name in streams[0] if name in streams[1]}

    def streams(self, run):
        found = {"output": lines_of(run.output, run.pid, self.own),
                 "errors": lines_of(run.errors.encode(), run.pid, self.own)}
        return found | {f"file {name}": lines_of(content, run.pid, self.own) for name, content in run.files.items()}

    def notes(self):
        found = [stable.note(name) for name, stable in self.stable.items()]
        found += [f"file {name}: written by one of two bare runs" for name in sorted(self.unsure_files)]
        if len(self.exit_codes) > 1:
            found.append(f"the exit code differs between two bare runs: {sorted(map(str, self.exit_codes))}")
        return [note for note in found if note]

    def differences(self, run):
        """What `run` did otherwise than both bare runs, in words."""
        found = []
        if run.exit_code not in self.exit_codes:
            found.append(f"{run.ending()} instead of {sorted(map(str, self.exit_codes))[0]}")
        written = set(run.files) - self.unsure_files
        found += [f"file {name} is missing" for name in sorted(self.files - written)]
        found += [f"file {name} is new" for name in sorted(written - self.files)]
        streams = self.streams(run)
        for name, stable in self.stable.items():
            difference = stable.difference(streams[name], run.budget_bytes) if name in streams else ""
            if difference:
                found.append(f"{name}: {difference}")
        return found

    def notes_on(self, run):
        """What differs on purpose: the device is as large as the budget."""
        streams = self.streams(run)
        found = {name: stable.budget_lines(streams[name], run.budget_bytes)
                 for name, stable in self.stable.items() if name in streams}
        return [f"{name}: line {', '.join(map(str, lines))}: the device's memory, which is the budget"
                for name, lines in found.items() if lines]

"""What became of each goal: rows of samples in, verdicts out, as a table for people and as JSON. Pure."""
import json
import statistics
from dataclasses import asdict, dataclass

import report
from report import show

MET, MISSED, LIMITED, MISSING = "met", "MISSED", "missed, reason given", "not measured"


@dataclass
class Verdict:
    goal: object  # goals.Goal
    state: str
    figures: list  # the subject's samples
    peer: str = ""  # the best peer that was measured
    peer_figure: float | None = None  # its median
    value: float | None = None  # what is held against the bound: the median, or its ratio to the peer's
    reason: str = ""


def judge(goals, rows):
    """A verdict for each goal, in their order."""
    return [_judge(goal, {row.subject: row.numbers() for row in rows if row.measure == goal.measure}) for goal in goals]


def _judge(goal, samples):
    ours = samples.get(goal.subject)
    if not ours:
        return Verdict(goal, MISSING, [], reason=f"no figure of {goal.subject}")
    if not goal.peers:
        return _against(goal, samples, 1, "", None)
    medians = {name: statistics.median(samples[name]) for name in goal.peers if samples.get(name)}
    if not medians:
        return Verdict(goal, MISSING, ours, reason=f"no figure of {' or '.join(goal.peers)}")
    best = (max if goal.more else min)(medians, key=medians.get)
    if medians[best] <= 0:
        return Verdict(goal, MISSING, ours, best, medians[best], reason=f"no ratio to {best}'s {show(medians[best])}")
    return _against(goal, samples, medians[best], best, medians[best])


def _against(goal, samples, one, peer, peer_figure):
    """The verdict of a figure, in parts of `one`."""
    value_of = lambda name: statistics.median(samples[name]) / one
    reached = lambda value: value >= goal.bound if goal.more else value <= goal.bound
    value = value_of(goal.subject)
    made = lambda state, reason="": Verdict(goal, state, samples[goal.subject], peer, peer_figure, value, reason)
    if reached(value):
        return made(MET)
    if not goal.reason:
        return made(MISSED)
    if not samples.get(goal.limit):
        return made(LIMITED, goal.reason)
    shown = f"{goal.limit} is at {ratio(value_of(goal.limit))}"
    if reached(value_of(goal.limit)):
        return made(MISSED, f"{shown}, so it can be reached")
    return made(LIMITED, f"{goal.reason}: {shown}")


def asked(goal):
    """A goal in words."""
    bound = f"{'at least' if goal.more else 'at most'} {_fraction(goal.bound) if goal.peers else show(goal.bound)}"
    return f"{bound} of {_best_of(goal.peers)}" if goal.peers else bound


def _fraction(bound):
    # A bound of 0.999 must not read as 1.00.
    return f"{bound:.3g}" if bound >= 0.1 else ratio(bound)


def _best_of(peers):
    return peers[0] if len(peers) == 1 else "the best of " + ", ".join(peers)


def ratio(value):
    return f"{value:.2f}" if value >= 0.1 else f"1/{1 / value:.0f}" if value > 0 else "0"


def spread(numbers):
    """Median, with the range in brackets and the number of samples."""
    if not numbers:
        return ""
    if len(numbers) == 1:
        return f"{show(numbers[0])} (once)"
    return f"{show(statistics.median(numbers))} ({show(min(numbers))} to {show(max(numbers))}, {len(numbers)})"


COLUMNS = ("measure", "goal", "figure", "beside", "ratio", "state", "reason")


def verdict_cells(each):
    """What the table has of a goal, in the order of COLUMNS."""
    subject = each.goal.subject
    name = each.goal.measure + ("" if subject == "ddprun" else f", {subject}")
    beside = f"{each.peer} {show(each.peer_figure)}" if each.peer else ""
    over = ratio(each.value) if each.peer and each.value is not None else ""
    return name, asked(each.goal), spread(each.figures), beside, over, each.state, each.reason


def verdict_table(verdicts):
    lines = ["| measure | goal | figure: median (range, samples) | beside | ratio | met | limit and reason |",
             "|---|---|---|---|---|---|---|"]
    return "\n".join(lines + ["| " + " | ".join(verdict_cells(each)) + " |" for each in verdicts])


def results_json(about, rows, verdicts):
    """The figures of RESULTS.md for the pages of the documentation, as that page shows them: a line for each."""
    middle = lambda row: dict(zip(("min", "median", "max", "samples"), report.cells(row, rows)))
    parts = [(json.dumps(key), [json.dumps(row) for row in found]) for key, found in (
        ("goals", [dict(zip(COLUMNS, verdict_cells(each))) for each in verdicts]),
        ("figures", [{"measure": row.measure, "subject": row.subject} | middle(row) for row in rows]))]
    lists = ",\n".join(f"{key}: [\n{(',' + chr(10)).join(found)}\n]" for key, found in parts)
    return f'{{"machine": {json.dumps(about)},\n{lists}}}\n'


def figure_table(rows):
    """All rows, those without a goal too: one line a measure and subject."""
    lines = ["| measure | subject | figure: median (range, samples) |", "|---|---|---|"]
    for row in rows:
        words = dict.fromkeys(sample for sample in row.samples if isinstance(sample, str))
        lines.append(f"| {row.measure} | {row.subject} | {'; '.join(filter(None, [spread(row.numbers()), *words]))} |")
    return "\n".join(lines)


def summary(verdicts):
    """One line: how many goals are met, and what of the rest."""
    count = lambda state: sum(each.state == state for each in verdicts)
    return (f"Goals: {len(verdicts)}, of which {count(MET)} met, {count(LIMITED)} missed for a reason, "
            f"{count(MISSED)} missed without one, {count(MISSING)} not measured")


def as_json(machine, rows, verdicts, notes):
    """All of a run for programs. Figures are in the unit that stands in the measure's name."""
    def of(verdict):
        goal = asdict(verdict.goal)
        return goal | {"state": verdict.state, "samples": verdict.figures, "peer": verdict.peer or None,
                       "peer_median": verdict.peer_figure, "value": verdict.value, "reason": verdict.reason or None}
    return json.dumps({"machine": machine, "rows": [asdict(row) for row in rows],
                       "goals": [of(verdict) for verdict in verdicts], "notes": notes}, indent=1)

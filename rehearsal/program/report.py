"""The report: in the order that a person needs, and as JSON. Pure."""
from __future__ import annotations

import dataclasses
import json
from typing import Dict, List, Optional

from ddprun_rehearsal.judge import Reference, Verdict

TITLES = {"kill": "one rank is killed", "node": "the node is lost", "stop": "the job is to stop",
          "hang": "one rank freezes", "disk": "the disk is full", "torn": "a save is torn"}


def percent(part: float) -> str:
    return "infinitely" if part == float("inf") else "%.2f %%" % (100 * part)


def _answer(held: Optional[bool]) -> str:
    return {True: "held", False: "NOT HELD", None: "unknown"}[held]


def resume_text(verdict: Verdict) -> str:
    if verdict.held is None:
        return "the program ended before step %d, where the fault was due" % verdict.played_at
    if verdict.resumes == "kept running":
        return "keeps running"
    if verdict.resumes == "yes":
        return "resumes: yes, from step %d, %s lost" % (verdict.first, _steps(verdict.lost))
    if verdict.resumes == "no":
        return "resumes: no, it starts again at step %d; %s lost" % (verdict.first, _steps(verdict.lost))
    code = "" if verdict.second_code is None else ", exit code %d" % verdict.second_code
    return "resumes: no step was seen after the fault" + code


def same_text(verdict: Verdict) -> str:
    if verdict.same == "different":
        begin = "" if verdict.differs_from is None else " from step %d on" % verdict.differs_from
        return "results: %s differs by up to %s%s, while two undisturbed runs differ by %s" % (
            verdict.name, percent(verdict.worst), begin, percent(verdict.noise))
    if verdict.same == "within the noise":
        return "results: the same within the noise of two undisturbed runs (%s: %s)" % (
            verdict.name, percent(verdict.noise))
    if verdict.same == "equal":
        return "results: the same, to the last printed digit"
    return "results: unknown: print the loss with each step"


def _steps(count: int) -> str:
    return "1 step" if count == 1 else "%d steps" % count


def _lines(verdict: Verdict) -> List[str]:
    lines = ["%s (%s): %s" % (verdict.fault, TITLES[verdict.fault], _answer(verdict.held))]
    lines += ["    **%s**" % cause for cause in verdict.causes]
    lines.append("    " + resume_text(verdict))
    if verdict.held is None:
        return lines
    if verdict.resumes != "unknown":
        lines.append("    " + same_text(verdict))
    if verdict.fault == "stop" and not verdict.stop_ignored:
        lines.append("    a snapshot is written at the stop" if verdict.saved_at_stop else
                     "    no snapshot is written at the stop, so each stop loses the steps since the last one")
    if verdict.torn:
        lines.append("    " + verdict.torn)
    if not verdict.finished:
        lines.append("    the run did not reach its end")
    if verdict.restart_seconds is not None:
        lines.append("    %.1f s from the fault to the first step after it" % verdict.restart_seconds)
    lines.append("    played at step %d: %s" % (verdict.played_at, verdict.done))
    return lines


def text(verdicts: List[Verdict], facts: Dict[str, object], warnings: List[str]) -> str:
    bad = [each for each in verdicts if not each.held]
    head = "all %d faults held" % len(verdicts) if not bad else "%d of %d faults did not hold: %s" % (
        len(bad), len(verdicts), ", ".join(each.fault for each in bad))
    lines = ["rehearsal: " + head]
    for verdict in sorted(verdicts, key=lambda each: bool(each.held)):
        lines += _lines(verdict)
    lines += ["note: " + each for each in warnings]
    lines.append("steps: %(first)s to %(last)s, seen in %(source)s; seed %(seed)s" % facts)
    return "\n".join(lines) + "\n"


def as_json(verdicts: List[Verdict], facts: Dict[str, object], warnings: List[str]) -> str:
    faults = [{key: value if value != float("inf") else None for key, value in dataclasses.asdict(each).items()}
              for each in verdicts]
    return json.dumps({"format": "ddprun rehearsal", "version": 1, "held": all(each.held for each in verdicts),
                       **facts, "warnings": warnings, "faults": faults}, indent=1) + "\n"


def noise_text(reference: Reference) -> str:
    if not reference.values:
        return "no values with the steps: whether results are the same cannot be judged"
    worst = max(reference.noise.values(), default=0.0)
    return "two undisturbed runs are equal" if worst == 0 else "two undisturbed runs differ by up to " + percent(worst)

#!/usr/bin/env python3
"""Draw what trainings wrote with --metrics: loss, throughput, scaling efficiency and communication share.

    trainer/training/plot.py OUTPUT.png METRICS.jsonl...

Each file is one run; a line is one epoch (see json_of in trainer/training/metrics.h). Runs of several world sizes give
the scaling: samples per second against those of the smallest world, divided by the growth of the world. An epoch that
was trained twice, because the job resumed, counts with its last line.
"""
import json
import sys
from pathlib import Path

NEEDED = {"epoch", "world", "loss", "samples_per_second", "communication_share", "hidden_share"}


def read(path):
    """The epochs of a run, in order. A line that is not a line of metrics ends the program with its place in the
    file."""
    epochs = {}
    for number, line in enumerate(Path(path).read_text().splitlines(), 1):
        try:
            entry = json.loads(line)
        except ValueError:
            sys.exit(f"{path}:{number}: not JSON; was the file cut short?")
        missing = NEEDED - set(entry if isinstance(entry, dict) else ())
        if missing:
            sys.exit(f"{path}:{number}: lacks {', '.join(sorted(missing))}")
        epochs[entry["epoch"]] = entry
    if not epochs:
        sys.exit(f"{path}: no epochs")
    return [epochs[key] for key in sorted(epochs)]


def median(values):
    values = sorted(values)
    return values[len(values) // 2]


def scaling(runs):
    """(world, median samples per second, efficiency) for each world size; the best run counts."""
    rates = {}
    for run in runs:
        # Without the first epoch, which includes the costs of warming up.
        rate = median([entry["samples_per_second"] for entry in run[1:] or run])
        rates[run[0]["world"]] = max(rate, rates.get(run[0]["world"], 0))
    least = min(rates)
    return [(world, rate, rate / rates[least] * least / world) for world, rate in sorted(rates.items())]


def draw(runs, names, output):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, ((loss, rate), (efficiency, share)) = pyplot.subplots(2, 2, figsize=(11, 8), layout="constrained")
    for i, (run, name) in enumerate(zip(runs, names)):
        # One colour for a run: what belongs to it is told apart by the kind of line.
        look = {"color": f"C{i % 10}"}
        epochs = [entry["epoch"] for entry in run]
        loss.plot(epochs, [entry["loss"] for entry in run], label=name, **look)
        if all("validation" in entry for entry in run):
            loss.plot(epochs, [entry["validation"] for entry in run], linestyle="dashed", **look)
        share.plot(epochs, [100 * entry["communication_share"] for entry in run], label=name, **look)
        exposed = [100 * entry["communication_share"] * (1 - entry["hidden_share"]) for entry in run]
        share.plot(epochs, exposed, linestyle="dashed", **look)
    worlds, rates, efficiencies = zip(*scaling(runs))
    rate.plot(worlds, rates, marker="o", label="measured")
    rate.plot(worlds, [rates[0] * world / worlds[0] for world in worlds], linestyle="dotted", label="ideal")
    efficiency.plot(worlds, efficiencies, marker="o")
    efficiency.set_ylim(0, max(1.1, *efficiencies))
    for axes, title, across, up in ((loss, "Loss (dashed: of the validation)", "epoch", "loss"),
                                    (rate, "Throughput", "ranks", "samples/s"),
                                    (efficiency, "Scaling efficiency", "ranks", "of ideal"),
                                    (share, "Communication (dashed: not hidden)", "epoch", "% of the time")):
        axes.set(title=title, xlabel=across, ylabel=up)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize="small")
    loss.set_yscale("log")
    figure.savefig(output, dpi=120)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    runs = [read(path) for path in sys.argv[2:]]
    for world, rate, efficiency in scaling(runs):
        print(f"{world} ranks: {rate:.0f} samples/s, efficiency {efficiency:.2f}")
    draw(runs, [Path(path).stem for path in sys.argv[2:]], sys.argv[1])


if __name__ == "__main__":
    main()

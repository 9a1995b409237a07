"""The plots of a run, from its rows. A plot whose measures are missing is left out. Needs matplotlib."""
import re
import statistics

# A subject has the same colour in all plots: ddprun is the one that is looked for.
COLOURS = {"ddprun": "#0b6e4f", "ddprun warm": "#0b6e4f", "ddprun cold": "#6bbf9c", "torchrun": "#d1495b",
           "PyTorch DDP": "#d1495b", "torch-libuv": "#d1495b", "torch": "#d1495b", "torch-poll": "#e89aa4",
           "srun": "#3d5a80", "mpirun": "#98a6bd", "redis": "#b5838d", "floor": "#8d8d8d", "echo": "#bdbdbd",
           "memcpy": "#8d8d8d", "dd oflag=direct": "#8d8d8d", "tenth": "#6bbf9c"}
PHASES = {"script": "until the script runs", "imports": "imports", "process group": "process group",
          "model": "model and snapshot", "first step": "first step"}
PHASE_COLOURS = ["#3d5a80", "#d1495b", "#edae49", "#66a182", "#8d8d8d"]
# Short names of the store's rows, in the plot's order.
STORE = {"add, 1 client, one core (us)": "add, 1 client",
         "get as PyTorch's client sends it, 1 client, one core (us)": "get, 1 client",
         "add, 8 clients (operations/s)": "add, 8 clients", "get, 8 clients (operations/s)": "get, 8 clients",
         "set, 8 clients (operations/s)": "set, 8 clients",
         "add, 50 clients, no pipeline (operations/s)": "add, 50 clients",
         "get, 50 clients, no pipeline (operations/s)": "get, 50 clients",
         "1,000 waiters, SET to last woken (ms)": "release 1,000",
         "10,000 waiters, SET to last woken (ms)": "release 10,000",
         "1,000 clients connect one by one (ms)": "connect 1,000", "16 MiB, set and get (ms)": "16 MiB"}


def medians(rows):
    """{measure: {subject: median}}"""
    found = {}
    for row in rows:
        if row.numbers():
            found.setdefault(row.measure, {})[row.subject] = statistics.median(row.numbers())
    return found


def by_size(figures, pattern):
    """{subject: [(number, median)]} of the measures that a pattern with one number matches."""
    found = {}
    for measure, subjects in figures.items():
        if match := re.fullmatch(pattern, measure):
            for subject, value in subjects.items():
                found.setdefault(subject, []).append((int(match[1]), value))
    return {subject: sorted(points) for subject, points in found.items()}


def speed(measure, figure, peer):
    """How many times as good a figure is as its peer's; of rates more is better, of times less."""
    return figure / peer if "/s" in measure else peer / figure


def lines(axes, series, x, y):
    for subject, points in series.items():
        axes.plot(*zip(*points), marker="o", label=subject, color=COLOURS.get(subject))
    axes.set(xscale="log", yscale="log", xlabel=x, ylabel=y)
    ticks = sorted({number for points in series.values() for number, _ in points})
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.legend(frameon=False)


def groups(axes, table, unit):
    """Grouped bars: {group: {subject: value}}."""
    width, named = 0.8 / max(map(len, table.values())), set()
    for place, bars in enumerate(table.values()):
        for index, (subject, height) in enumerate(bars.items()):
            # A label that begins with "_" stands in no legend.
            label = f"_{subject}" if subject in named else subject
            at = place + (index - (len(bars) - 1) / 2) * width
            drawn = axes.bar(at, height, width * 0.92, label=label, color=COLOURS.get(subject))
            axes.bar_label(drawn, [f"{height:.3g}"], fontsize=7, padding=2)
            named.add(subject)
    axes.set_xticks(range(len(table)), table)
    axes.set_ylabel(unit)
    axes.margins(y=0.15)
    axes.legend(frameon=False)


def start(axes, figures):
    series = by_size(figures, r"start, (\d+) workers? \(ms\)")
    lines(axes, series, "workers on one node", "ms")
    axes.set_title("exec of the launcher to the last worker in main()")


def restart_gap(axes, figures):
    subjects = [name for name in ("torchrun", "ddprun cold", "ddprun warm")
                if name in figures.get("restart gap, crash to first resumed step (s)", {})]
    left = [0.0] * len(subjects)
    for (phase, words), colour in zip(PHASES.items(), PHASE_COLOURS):
        widths = [figures[f"restart gap, until {phase} (s)"][name] for name in subjects]
        axes.barh(subjects, widths, left=left, label=words, color=colour)
        left = [before + width for before, width in zip(left, widths)]
    for place, total in enumerate(left):
        axes.text(total, place, f" {total:.3g} s", va="center", fontsize=9)
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.set(xlabel="seconds from the crash of a rank", title="restart of a PyTorch script, to its first resumed step")
    axes.legend(frameon=False, loc="lower right")


def meeting(axes, figures):
    steps = {"all have proved themselves and are welcome": "all welcome",
             "all run the first generation": "all run", "a failure to all told": "a failure told to all"}
    series = {words: by_size(figures, rf"(\d+) nodes: {step} \(s\)").get("ddprun", []) for step, words in steps.items()}
    lines(axes, {words: points for words, points in series.items() if points}, "nodes", "s")
    axes.set_title("meeting of many nodes, all on this machine")


def store_table(figures):
    """{short name of a row: {subject: times as fast as the better of PyTorch's two}}, of the rows that have both."""
    table = {}
    for measure, words in STORE.items():
        found = figures.get(f"store, {measure}", {})
        peers = [found[name] for name in ("torch-libuv", "torch-poll") if name in found]
        if peers and "ddprun" in found:
            best = max(peers) if "/s" in measure else min(peers)
            table[words] = {name: speed(measure, found[name], best) for name in ("ddprun", "redis", "floor")
                            if name in found}
    return table


def store(axes, figures):
    groups(axes, store_table(figures), "times as fast as the better of PyTorch's two")
    axes.axhline(1, color=COLOURS["torchrun"], linewidth=1)
    axes.tick_params(axis="x", labelrotation=35)
    axes.set_title("the workers' store beside PyTorch's (1 = PyTorch's)")


def output(axes, figures):
    table = {}
    for measure, found in figures.items():
        if match := re.fullmatch(r"output, (\d workers to a \w+), million lines/s, .*", measure):
            table[match[1].replace(" to a ", ",\nto a ")] = found
    groups(axes, table, "million lines of 80 bytes a second")
    axes.set_title("output of the workers")


def snapshots(axes, figures):
    table = {}
    for measure, found in figures.items():
        if match := re.fullmatch(r"snapshot, (.*) \(GB/s\)", measure):
            table[match[1].replace(" beside", "\nbeside")] = found
    groups(axes, table, "GB/s")
    axes.set(yscale="log", title="snapshots")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")


def scaling(axes, figures):
    for subject, points in by_size(figures, r"scaling, (\d+) ranks? \(ms a step\)").items():
        alone = dict(points).get(1)
        if alone:
            axes.plot([world for world, _ in points], [100 * alone / step for _, step in points], marker="o",
                      label=subject, color=COLOURS.get(subject))
    axes.set(xlabel="ranks on this machine", ylabel="a step alone / a step together (%)", ylim=(0, 105),
             title="scaling of a step of 100 ms and 13 MB of gradients")
    axes.set_xticks(sorted({world for points in by_size(figures, r"scaling, (\d+) ranks? \(ms a step\)").values()
                            for world, _ in points}))
    axes.legend(frameon=False)


def has(pattern):
    return lambda figures: any(re.fullmatch(pattern, measure) for measure in figures)


# File name: (function, whether these figures have something for it).
PLOTS = {"start": (start, has(r"start, \d+ workers? \(ms\)")),
         "restart_gap": (restart_gap, has(r"restart gap, crash to first resumed step \(s\)")),
         "meeting": (meeting, has(r"\d+ nodes: all run the first generation \(s\)")),
         "store": (store, store_table),
         "output": (output, has(r"output, \d workers to a \w+, million lines/s, .*")),
         "snapshots": (snapshots, has(r"snapshot, .*")), "scaling": (scaling, has(r"scaling, 1 rank \(ms a step\)"))}


def drawable(rows):
    """The names of the plots that these rows have something for."""
    figures = medians(rows)
    return [name for name, (_, wanted) in PLOTS.items() if wanted(figures)]


def draw(rows, folder):
    """Draws into a folder, which is made; the paths of the pictures."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    folder.mkdir(parents=True, exist_ok=True)
    figures, made = medians(rows), []
    for name in drawable(rows):
        figure, axes = pyplot.subplots(figsize=(9, 4.6), layout="constrained")
        axes.spines[["top", "right"]].set_visible(False)
        PLOTS[name][0](axes, figures)
        figure.savefig(folder / f"{name}.png", dpi=110)
        pyplot.close(figure)
        made.append(folder / f"{name}.png")
    return made

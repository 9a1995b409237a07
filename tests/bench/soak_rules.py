"""What a soak decides: which fault comes next, and whether something grows. Pure."""
from dataclasses import dataclass, field

NODES = 3
# Fault: (how often beside the others, whether it may end a ddprun).
FAULTS = {"kill a worker": (5, False), "crash a worker": (2, False), "freeze a worker": (2, False),
          "kill a ddprun": (2, True), "kill a whole node": (1, True), "freeze a ddprun": (1, True),
          "cut a node's network": (1, True)}
PERIOD = 300  # seconds in which one node's ddprun is spared, so that it lives long enough to be watched

# What may grow in a process that lives through many restarts. A new leader has connections and a history to hold.
DESCRIPTORS = 8
MEMORY_KIB, MEMORY_KIB_A_RESTART = 1024, 4
FILES, FILES_A_RESTART, FILES_A_LOST_NODE = 20, 4, 40  # entries of the ledger; what a killed node leaves behind
FEWEST_RESTARTS = 6  # less than that between two looks proves nothing


class Plan:
    """The faults of a soak, all drawn from its seed."""

    def __init__(self, dice, with_network):
        self.dice = dice
        self.faults = [name for name in FAULTS if with_network or "network" not in name]
        self.spared = {}

    def pause(self):
        """Seconds of training until the next fault. Now and then two come at once."""
        return self.dice.uniform(0, 0.5) if self.dice.random() < 0.15 else self.dice.uniform(1, 6)

    def fault(self, since):
        """(fault, node, seconds that it lasts), so long after the begin."""
        period = int(since // PERIOD)
        spared = self.spared.setdefault(period, self.dice.randrange(NODES))
        name = self.dice.choices(self.faults, [FAULTS[each][0] for each in self.faults])[0]
        nodes = [node for node in range(NODES) if node != spared or not FAULTS[name][1]]
        return name, self.dice.choice(nodes), self.dice.uniform(0.3, 2)


@dataclass
class Watched:
    """What was seen of one process: looks as (restarts so far, memory in KiB, descriptors)."""
    name: str
    looks: list = field(default_factory=list)

    def add(self, restarts, memory, descriptors):
        self.looks.append((restarts, memory, descriptors))

    def ends(self):
        """The looks of its first and last third, without what it needs to begin. None if it saw too few restarts."""
        third = len(self.looks) // 3
        if third < 3:
            return None
        first, last = self.looks[third // 2:third + third // 2], self.looks[-third:]
        return (first, last) if last[0][0] - first[-1][0] >= FEWEST_RESTARTS else None

    def growth(self):
        """(restarts, KiB, descriptors) between both ends; None as above. Minima, because a restart in the middle of a
        look needs more for a moment."""
        ends = self.ends()
        if ends is None:
            return None
        first, last = ([min(column) for column in zip(*looks)] for looks in ends)
        return last[0] - first[0], last[1] - first[1], last[2] - first[2]

    def complaint(self):
        """A sentence if it has grown, else an empty text."""
        grown = self.growth()
        if grown is None:
            return ""
        restarts, memory, descriptors = grown
        allowed = MEMORY_KIB + MEMORY_KIB_A_RESTART * restarts
        if memory > allowed:
            return f"{self.name} grew by {memory} KiB over {restarts} restarts, at most {allowed} are allowed"
        if descriptors > DESCRIPTORS:
            return (f"{self.name} has {descriptors} descriptors more after {restarts} restarts, at most {DESCRIPTORS} "
                    "are allowed")
        return ""


def files_complaint(before, after, restarts, lost_nodes):
    """A sentence if the files of a job have grown by more than its restarts explain, else an empty text."""
    allowed = FILES + FILES_A_RESTART * restarts + FILES_A_LOST_NODE * lost_nodes
    if after - before <= allowed:
        return ""
    return (f"{after - before} files more after {restarts} restarts and {lost_nodes} lost nodes, at most {allowed} are "
            "allowed")


def goodput(steps, seconds, calm_rate):
    """The share of the time that went into steps which counted, of what an undisturbed job does in it."""
    return steps / (seconds * calm_rate) if seconds > 0 and calm_rate > 0 else 0.0

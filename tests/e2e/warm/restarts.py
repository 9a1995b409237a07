"""A script with a library and a package, which fails once for each file that is named.

restarts.py FOLDER: imports `library` (from PYTHONPATH), `mine` (beside this copy in FOLDER) and a package, reports a step
(without REPORTS_NOTHING), and says what it sees. In generation N it waits for FOLDER/go.N, and fails unless
FOLDER/last.N exists.
"""
import os
import sys
import time

import library  # of the user, on PYTHONPATH
import mine
import mpmath  # a package that a server may import before the script does

folder, generation = sys.argv[1], os.environ["TORCHELASTIC_RESTART_COUNT"]
with open("/proc/%d/comm" % os.getppid()) as file:
    parent = file.read().strip()
place = "generation %s rank %s" % (generation, os.environ["RANK"])
sys.stdout.write("%s library %s mine %s package %s %s\n" % (place, library.VALUE, mine.VALUE, mpmath.VALUE, parent))
if "REPORTS_NOTHING" not in os.environ:
    os.write(int(os.environ["DDPRUN_PROGRESS_FD"]), b"step=1\n")
end = time.monotonic() + 60
while not os.path.exists("%s/go.%s" % (folder, generation)) and time.monotonic() < end:
    time.sleep(0.01)
sys.exit(0 if os.path.exists("%s/last.%s" % (folder, generation)) else 3)

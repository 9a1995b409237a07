"""transformers_script.py, of which rank 0 dies in the first generation while it writes the optimizer of checkpoint-20.
Argument: steps. OLDER=bad: checkpoint-10 has lost its content by then, but not its size. OTHERS=yes: checkpoint-20 is
another user's."""
import os
import runpy
import signal

import torch

save = torch.save


def save_half(what, path, *args, **kwargs):
    save(what, path, *args, **kwargs)
    if not str(path).endswith("checkpoint-20/optimizer.pt") or os.environ["TORCHELASTIC_RESTART_COUNT"] != "0":
        return
    folder = os.path.dirname(path)
    os.truncate(path, os.path.getsize(path) // 2)
    if os.environ.get("OLDER") == "bad":
        older = os.path.join(os.path.dirname(folder), "checkpoint-10", os.path.basename(path))
        size = os.path.getsize(older)
        os.truncate(older, 0)
        os.truncate(older, size)
    if os.environ.get("OTHERS"):
        os.chown(folder, 12345, -1)
    os.kill(os.getpid(), signal.SIGKILL)


if os.environ["RANK"] == "0":
    torch.save = save_half
runpy.run_path(os.path.join(os.path.dirname(__file__), "transformers_script.py"))

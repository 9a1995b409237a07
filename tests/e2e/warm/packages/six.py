"""Stands in for a version that was not proved: it keeps its rank, and things of its process."""
import multiprocessing
import os
import random
import uuid

RANK = os.environ.get("RANK", "none")
WORLD = dict(os.environ)
RUN, SEED = uuid.uuid4().hex, random.Random().random()
LOCK = multiprocessing.Lock()

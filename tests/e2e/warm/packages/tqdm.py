"""Stands in for a version that was not proved: it keeps its rank, and an id of its own."""
import os
import uuid

RANK = os.environ.get("RANK", "none")
RUN = uuid.uuid4().hex

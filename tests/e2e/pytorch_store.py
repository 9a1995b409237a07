"""Runs PyTorch's own TCPStore client against a store: pytorch_store.py HOST PORT. Prints "ok", or fails with what differed.

Works with torch 1.13 and all later versions; what a version does not have is left out and named. The store must be empty.
"""
import sys
import threading
import time
from datetime import timedelta

import torch
from torch.distributed import PrefixStore, TCPStore

HOST, PORT = sys.argv[1], int(sys.argv[2])
skipped = []


def client(world_size=None, timeout=30):
    return TCPStore(HOST, PORT, world_size, False, timedelta(seconds=timeout))


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: got {got!r}, wanted {wanted!r}")


def expect_error(what, call):
    try:
        call()
    except Exception:  # RuntimeError in old versions, DistStoreError in new ones
        return
    sys.exit(f"{what}: no error")


def has(store, method):
    if hasattr(store, method):
        return True
    skipped.append(method)
    return False


def plain_keys(store):
    store.set("k", "v")
    expect("get", store.get("k"), b"v")
    store.set("empty", "")
    expect("empty value", store.get("empty"), b"")
    large = "x" * (3 << 20)
    store.set("large", large)
    expect("large value", store.get("large") == large.encode(), True)
    expect("add", store.add("n", 21), 21)
    expect("add again", store.add("n", -24), -3)
    expect("get of a counter", store.get("n"), b"-3")
    expect("compare_set missing", store.compare_set("c", "old", "new"), b"old")
    expect("compare_set create", store.compare_set("c", "", "first"), b"first")
    expect("compare_set lost", store.compare_set("c", "other", "second"), b"first")
    expect("compare_set won", store.compare_set("c", "first", "second"), b"second")


def counts(store):
    before = store.num_keys()
    store.set("gone", "1")
    expect("num_keys", store.num_keys(), before + 1)
    expect("delete_key", store.delete_key("gone"), True)
    expect("delete_key again", store.delete_key("gone"), False)
    expect("num_keys after", store.num_keys(), before)


def waits(store):
    started = time.monotonic()
    # torch 1.13 does not take back a wait that timed out; a client of its own keeps that apart.
    late = client(timeout=1)
    expect_error("wait for nothing", lambda: late.wait(["never"], timedelta(milliseconds=200)))
    expect("wait ended in time", time.monotonic() - started < 10, True)
    if torch.__version__ >= "2.2" or torch.__version__.startswith("2.1"):
        expect("client after a timeout", late.add("n", 0), -3)
    got = []
    reader = client()
    thread = threading.Thread(target=lambda: got.append(reader.get("later")))
    thread.start()
    store.set("later", "now")
    thread.join(30)
    expect("get that waited", got, [b"now"])
    store.wait(["k", "n"], timedelta(seconds=10))


def newer_methods(store):
    if has(store, "check"):
        expect("check", store.check(["k", "n"]), True)
        expect("check missing", store.check(["k", "nothing"]), False)
    if has(store, "append"):
        store.append("log", "a")
        store.append("log", "bc")
        expect("append", store.get("log"), b"abc")
    if has(store, "multi_set"):
        store.multi_set(["m1", "m2"], ["1", "22"])
        expect("multi_get", store.multi_get(["m2", "m1"]), [b"22", b"1"])
    if has(store, "queue_push"):
        store.queue_push("q", "e1")
        store.queue_push("q", "e2")
        expect("queue_len", store.queue_len("q"), 2)
        expect("queue_pop", store.queue_pop("q"), b"e1")
    if has(store, "list_keys"):
        expect("list_keys", "k" in [k if isinstance(k, str) else k.decode() for k in store.list_keys()], True)
    if has(store, "barrier"):
        other = client()
        thread = threading.Thread(target=lambda: other.barrier("b", 2, timedelta(seconds=30)))
        thread.start()
        store.barrier("b", 2, timedelta(seconds=30))
        thread.join(30)
    if has(store, "watch_key"):
        seen = []
        store.watch_key("watched", lambda old, new: seen.append((old, new)))
        client().set("watched", "1")
        deadline = time.monotonic() + 20
        while not seen and time.monotonic() < deadline:
            store.get("k")
        expect("watch_key", len(seen), 1)


def main():
    store = client(world_size=3)
    plain_keys(store)
    counts(store)
    waits(store)
    newer_methods(store)
    nested = PrefixStore("worker/", PrefixStore("attempt_0", store))
    nested.set("k", "nested")
    expect("prefix", store.get("attempt_0/worker//k"), b"nested")
    left_out = f", without {', '.join(skipped)}" if skipped else ""
    print(f"ok: torch {torch.__version__}{left_out}")


main()

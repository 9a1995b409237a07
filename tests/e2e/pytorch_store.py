"""PyTorch's own TCPStore: every method of its client against a store, what came back printed line by line.

    pytorch_store.py HOST PORT [--no-queues]
                                      the calls; the store must be empty
    pytorch_store.py HOST PORT --large MIB
                                      one value of that size, there and back
    pytorch_store.py serve [uv|poll]  PyTorch's own server: prints its port, serves until its input ends

Works with torch 1.13 and all later versions; what a version does not have is left out. The lines hold nothing that may
differ from run to run, so those of two servers can be compared.
"""
import sys
import threading
from datetime import timedelta

import torch
from torch.distributed import PrefixStore, TCPStore

VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])
SHORT, LONG = timedelta(seconds=1), timedelta(seconds=60)  # 1.13 knows whole seconds only


def serve(back_end):
    options = {"use_libuv": back_end == "uv"} if VERSION >= (2, 2) else {}
    store = TCPStore("127.0.0.1", 0, None, True, LONG, **options)
    print(store.port, flush=True)
    sys.stdin.read()


def client(world_size=None, timeout=LONG):
    return TCPStore(sys.argv[1], int(sys.argv[2]), world_size, False, timeout)


def kind(error):
    """An error's name, where there are several: old versions have RuntimeError only."""
    text = str(error)
    for word in ("Socket Timeout", "timeout", "timed out", "empty"):
        if word in text:
            return f"{type(error).__name__}, {word}"
    return f"{type(error).__name__}"


def say(what, call):
    try:
        answer = call()
        if isinstance(answer, (bytes, str)) and len(answer) > 100:
            answer = f"{len(answer)} bytes, {sum(answer) if isinstance(answer, bytes) else ''}"
        print(f"{what}: {answer!r}", flush=True)
    except Exception as error:
        print(f"{what}: {kind(error)}", flush=True)


def in_thread(call):
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    return thread


def values(store):
    store.set("k", "v")
    say("get", lambda: store.get("k"))
    store.set("k", "w")
    say("get after another set", lambda: store.get("k"))
    store.set("empty", "")
    say("get of an empty value", lambda: store.get("empty"))
    store.set("", "nameless")
    say("get of an empty key", lambda: store.get(""))
    store.set("a/b//c é", "1")
    say("get of an odd key", lambda: store.get("a/b//c é"))
    store.set("binary", "\0\1\n\r")
    say("get of a binary value", lambda: store.get("binary"))
    store.set("large", "x" * (3 << 20))
    say("get of a large value", lambda: store.get("large"))
    store.set("limit", "y" * (8 << 20))
    say("get of 8 MiB", lambda: store.get("limit"))


def counters(store):
    say("add", lambda: store.add("n", 21))
    say("add again", lambda: store.add("n", -24))
    say("get of a counter", lambda: store.get("n"))
    say("add of nothing", lambda: store.add("n", 0))
    say("add of much", lambda: store.add("much", 2**62))
    store.set("text", "12")
    say("add to a text", lambda: store.add("text", 1))
    store.set("loose", " 7x")
    say("add to a loose number", lambda: store.add("loose", 1))
    spoiled = client()
    spoiled.set("word", "abc")
    say("add to a word", lambda: spoiled.add("word", 1))


def compare_set(store):
    say("compare_set, missing, expectation", lambda: store.compare_set("c", "old", "new"))
    say("compare_set, missing, none", lambda: store.compare_set("c", "", "first"))
    say("compare_set, lost", lambda: store.compare_set("c", "other", "second"))
    say("compare_set, won", lambda: store.compare_set("c", "first", "second"))
    say("compare_set to empty", lambda: store.compare_set("c", "second", ""))
    say("compare_set from empty", lambda: store.compare_set("c", "", "third"))
    say("value then", lambda: store.get("c"))


def counts(store):
    before = store.num_keys()
    store.set("gone", "1")
    say("num_keys more", lambda: store.num_keys() - before)
    say("delete_key", lambda: store.delete_key("gone"))
    say("delete_key again", lambda: store.delete_key("gone"))
    say("num_keys", store.num_keys)


def waits(store):
    # torch before 2.1 does not take back a wait that timed out; a client of its own keeps that apart.
    late = client(timeout=SHORT)
    say("wait for nothing", lambda: late.wait(["never", "k"], SHORT))
    if VERSION >= (2, 1):
        say("the client after that", lambda: late.add("n", 0))
        say("get of nothing", lambda: client(timeout=SHORT).get("never"))
        say("wait again", lambda: late.wait(["k"], LONG))
    say("wait for what is there", lambda: store.wait(["k", "n"], LONG))
    say("wait for one key twice", lambda: store.wait(["k", "k"], LONG))
    got = []
    thread = in_thread(lambda: got.append(client().get("later")))
    store.set("later", "now")
    thread.join(60)
    say("get that waited", lambda: got)
    waiting = client()
    thread = in_thread(lambda: say("wait that ended with add", lambda: waiting.wait(["w1", "w2"], LONG)))
    store.set("w1", "")
    store.add("w2", 1)
    thread.join(60)
    if hasattr(store, "check"):
        say("check", lambda: store.check(["k", "n"]))
        say("check, one missing", lambda: store.check(["k", "nothing"]))
        say("check of none", lambda: store.check([]))


def many_at_once(store):
    if hasattr(store, "append"):
        store.append("log", "a")
        store.append("log", "bc")
        say("append", lambda: store.get("log"))
    if hasattr(store, "multi_set"):
        store.multi_set(["m1", "m2", "m3"], ["1", "22", ""])
        say("multi_get", lambda: store.multi_get(["m3", "m2", "m1"]))
        say("multi_get of none", lambda: store.multi_get([]))
        say("multi_get, one missing", lambda: client(timeout=SHORT).multi_get(["m1", "never"]))


def queues(store):
    if not hasattr(store, "queue_push") or "--no-queues" in sys.argv:
        return
    store.queue_push("q", "e1")
    store.queue_push("q", "e2")
    say("queue_len", lambda: store.queue_len("q"))
    say("queue_pop", lambda: store.queue_pop("q"))
    say("check of a queue", lambda: store.check(["q"]))
    say("queue_pop, not blocking", lambda: store.queue_pop("q", False))
    say("queue_pop, empty", lambda: store.queue_pop("q", False))
    say("queue_pop, in vain", lambda: client(timeout=SHORT).queue_pop("q2"))
    say("queue_len, empty", lambda: store.queue_len("q2"))
    thread = in_thread(lambda: say("queue_pop that waited", lambda: client().queue_pop("q3")))
    store.queue_push("q3", "late")
    thread.join(60)


def newest(store):
    if hasattr(store, "barrier"):
        other = client()
        thread = in_thread(lambda: other.barrier("b", 2, LONG))
        say("barrier", lambda: store.barrier("b", 2, LONG))
        thread.join(60)
        say("barrier, in vain", lambda: client().barrier("b2", 2, SHORT))
        say("its counter", lambda: store.get("b2"))
    if hasattr(store, "list_keys"):
        say("list_keys", lambda: sorted(store.list_keys()))
    if hasattr(store, "clone"):
        say("clone", lambda: store.clone().get("k"))
    if hasattr(store, "watch_key"):
        seen, called = [], threading.Event()
        store.watch_key("watched", lambda *change: (seen.append(change), called.set()))
        client().set("watched", "1")
        called.wait(60)
        say("watch_key", lambda: seen)


def prefixes(store):
    nested = PrefixStore("worker/", PrefixStore("attempt_0", store))
    nested.set("k", "nested")
    say("prefix", lambda: store.get("attempt_0/worker//k"))
    say("prefix, get", lambda: nested.get("k"))
    say("prefix, add", lambda: nested.add("n", 5))
    say("prefix, compare_set", lambda: nested.compare_set("k", "nested", "other"))
    say("prefix, delete_key", lambda: nested.delete_key("n"))
    say("prefix, wait", lambda: nested.wait(["k"], LONG))
    if hasattr(nested, "multi_set") and VERSION >= (2, 1):
        nested.multi_set(["m1", "m2"], ["1", "2"])
        say("prefix, multi_get", lambda: nested.multi_get(["m2", "m1"]))
    if hasattr(nested, "list_keys"):
        say("prefix, list_keys", lambda: sorted(nested.list_keys()))
    say("num_keys at the end", nested.num_keys)


def large(mib):
    value = bytes(range(256)) * (mib << 12)
    client().set("large", value)
    assert client().get("large") == value
    print(f"{mib} MiB came back whole")


def main():
    if sys.argv[1] == "serve":
        return serve(sys.argv[2] if len(sys.argv) > 2 else "uv")
    if "--large" in sys.argv:
        return large(int(sys.argv[-1]))
    store = client(world_size=3)
    for part in (values, counters, compare_set, counts, waits, many_at_once, queues, newest, prefixes):
        part(store)
    print("all called", flush=True)


main()

"""Records what a PyTorch client says to PyTorch's own server, byte by byte: record.py OUT, run with the PyTorch in question.

One connection, every method of the client that is answered the same each time. Written is one line for each change of
direction, "> " what the client sent or "< " what the server answered, in hexadecimal; the nonce of PING, which is a process
id, is replaced by 0x1234 on both ways. Made once for each version (torch-2.5.txt: 2.5.1); replayed by transcript_test.cc.
"""
import multiprocessing
import re
import socket
import sys
import threading
from datetime import timedelta

import torch
from torch.distributed import TCPStore

LONG, SHORT = timedelta(seconds=60), timedelta(seconds=1)
VERSION = tuple(int(part) for part in re.findall(r"\d+", torch.__version__)[:2])


class Recorder:
    """A way through to the server, for one connection, that notes what passes."""

    def __init__(self, port):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.server_port = port
        self.lines = []
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.accept, daemon=True)]
        self.threads[0].start()

    def accept(self):
        client, _ = self.listener.accept()
        server = socket.create_connection(("127.0.0.1", self.server_port))
        for sides in ((client, server, ">"), (server, client, "<")):
            self.threads.append(threading.Thread(target=self.pass_on, args=sides, daemon=True))
            self.threads[-1].start()

    def pass_on(self, one, other, mark):
        while data := one.recv(1 << 20):
            with self.lock:
                if self.lines and self.lines[-1][0] == mark:
                    self.lines[-1] = (mark, self.lines[-1][1] + data)
                else:
                    self.lines.append((mark, data))
            other.sendall(data)
        other.shutdown(socket.SHUT_WR)

    def finish(self):
        while len(self.threads) < 3:
            self.threads[0].join()
        for thread in self.threads:
            thread.join()
        return self.lines


def attempt(call):
    try:
        call()
    except RuntimeError:  # a wait in vain: its bytes count
        pass


def use(store):
    store.set("k", "v")
    store.get("k")
    store.set("empty", "")
    store.get("empty")
    store.set("binary", bytes(range(256)).decode("latin-1"))
    store.set("packets", "x" * 3000)  # over the size at which newer clients cut a request
    store.get("packets")
    store.add("n", 21)
    store.add("n", -24)
    store.get("n")
    store.compare_set("c", "old", "new")
    store.compare_set("c", "", "first")
    store.compare_set("c", "other", "second")
    store.compare_set("c", "first", "second")
    store.wait(["k", "n"], LONG)
    store.wait(["k", "k"], LONG)
    attempt(lambda: store.wait(["never", "k"], SHORT))
    store.add("n", 0)
    if hasattr(store, "check"):
        store.check(["k", "n"])
        store.check(["k", "nothing"])
    store.num_keys()
    store.delete_key("empty")
    store.delete_key("empty")
    store.append("log", "a")
    store.append("log", "bc")
    store.get("log")
    store.multi_set(["m1", "m2", "m3"], ["1", "22", ""])
    store.multi_get(["m3", "m2", "m1"])
    store.num_keys()
    if hasattr(store, "queue_push"):
        store.queue_push("q", "e1")
        store.queue_push("q", "e2")
        store.queue_len("q")
        store.queue_pop("q")
        store.queue_pop("q", False)
        attempt(lambda: store.queue_pop("q", False))
        attempt(lambda: store.queue_pop("q2"))
        store.queue_len("q2")


def without_nonce(lines):
    text = [mark + " " + data.hex() for mark, data in lines]
    if VERSION < (2, 5):
        return text
    nonce = re.search(r"00cef7853c0d(.{8})", text[0]).group(1)
    assert text[1] == "< " + nonce, text[1]
    return [text[0].replace("0d" + nonce, "0d34120000"), "< 34120000", *text[2:]]


def main():
    options = {"use_libuv": True} if VERSION >= (2, 2) else {}
    server = TCPStore("127.0.0.1", 0, None, True, LONG, **options)
    recorder = Recorder(server.port)
    # In a process of its own: some methods of some versions hold the interpreter's lock while they wait.
    client = multiprocessing.get_context("fork").Process(
        target=lambda: use(TCPStore("127.0.0.1", recorder.port, 2, False, SHORT)))
    client.start()
    client.join(60)
    assert client.exitcode == 0, client.exitcode
    lines = without_nonce(recorder.finish())
    with open(sys.argv[1], "w", encoding="ascii") as out:
        out.write("\n".join(lines) + "\n")
    print(torch.__version__, len(lines), "lines")


main()

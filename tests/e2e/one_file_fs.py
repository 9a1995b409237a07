#!/usr/bin/env python3
"""A file system with one file, NAME, whose bytes are those of another one: one_file_fs.py FILE FOLDER NAME. As root.

It answers the kernel by itself (fuse(4)), so a test can stop it with SIGSTOP: then the file system hangs, as one of a
network does. It ends when the folder is unmounted."""
import ctypes
import errno
import os
import struct
import sys

FORGET, BATCH_FORGET, INTERRUPT = 2, 42, 36  # without an answer
LOOKUP, GETATTR, OPEN, READ, RELEASE, FLUSH, INIT = 1, 3, 14, 15, 18, 25, 26
ROOT, FILE = 1, 2  # node ids
FOREVER = 1 << 30  # seconds for which the kernel believes an answer
KEEP_CACHE = 2


def attributes(node, size):
    mode, links = (0o040755, 2) if node == ROOT else (0o100755, 1)
    return struct.pack("<6Q10I", node, size, (size + 511) // 512, 0, 0, 0, 0, 0, 0, mode, links, 0, 0, 0, 4096, 0)


def serve(content, name, fuse):
    sizes = {ROOT: 4096, FILE: len(content)}
    while True:
        try:
            request = os.read(fuse, 1 << 20)
        except OSError as end:
            if end.errno == errno.ENODEV:
                return
            continue
        _, opcode, unique, node = struct.unpack_from("<IIQQ", request)
        body, error, answer = request[40:], 0, b""
        if opcode in (FORGET, BATCH_FORGET, INTERRUPT):
            continue
        if opcode == INIT:
            answer = struct.pack("<4I2H2I2H8I", 7, 31, 1 << 17, 0, 16, 12, 1 << 17, 1, 0, 0, *[0] * 8)
        elif opcode == LOOKUP and body.rstrip(b"\0") == name.encode():
            answer = struct.pack("<4Q2I", FILE, 0, FOREVER, FOREVER, 0, 0) + attributes(FILE, sizes[FILE])
        elif opcode == LOOKUP:
            error = errno.ENOENT
        elif opcode == GETATTR:
            answer = struct.pack("<Q2I", FOREVER, 0, 0) + attributes(node, sizes[node])
        elif opcode == OPEN:
            answer = struct.pack("<Q2I", 0, KEEP_CACHE, 0)
        elif opcode == READ:
            _, offset, size = struct.unpack_from("<QQI", body)
            answer = content[offset:offset + size]
        elif opcode not in (RELEASE, FLUSH):
            error = errno.ENOSYS
        os.write(fuse, struct.pack("<IiQ", 16 + len(answer), -error, unique) + answer)


def main():
    path, folder, name = sys.argv[1:]
    with open(path, "rb") as file:
        content = file.read()
    fuse = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={fuse},rootmode=40000,user_id=0,group_id=0,allow_other"
    if ctypes.CDLL(None, use_errno=True).mount(b"one_file", folder.encode(), b"fuse", 0, options.encode()) != 0:
        sys.exit(f"mount: {os.strerror(ctypes.get_errno())}")
    serve(content, name, fuse)


main()

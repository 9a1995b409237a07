#!/usr/bin/env python3
"""The tables for exceptions of the program named: the index has each entry of .eh_frame, which has one end, its last
bytes. Where the linker has put apart what is seldom used (cmake/seldom_used.cmake), nothing that is always used needs a
byte of that part: it is not in memory while the file system below the program hangs."""
import struct
import sys

# GCC's encodings of addresses: 4 bytes, from their own place or from the index.
FROM_PLACE, FROM_INDEX = 0x1B, 0x3B


def fail(sentence):
    sys.exit(f"FAILED: {sentence}")


def check(holds, sentence):
    if not holds:
        fail(sentence)


class Program:
    """Sections and symbols of an ELF file of 64 bits."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.bytes = file.read()
        at, = struct.unpack_from("<Q", self.bytes, 40)
        size, count, names = struct.unpack_from("<HHH", self.bytes, 58)
        self.headers = [struct.unpack_from("<IIQQQQIIQQ", self.bytes, at + i * size) for i in range(count)]
        self.sections = [(self.text(self.headers[names][4] + header[0]), header) for header in self.headers]

    def text(self, at):
        return self.bytes[at:self.bytes.index(b"\0", at)].decode()

    def section(self, name):
        """(address, bytes)"""
        found = [header for its_name, header in self.sections if its_name == name]
        check(len(found) == 1, f"{len(found)} sections {name}")
        return found[0][3], self.bytes[found[0][4]:found[0][4] + found[0][5]]

    def marks(self):
        """{symbol: address} of the parts that are seldom used"""
        found = {}
        for name, (_, _, _, _, at, size, link, _, _, _) in self.sections:
            for entry in range(at, at + size, 24) if name == ".symtab" else ():
                word, _, _, _, value, _ = struct.unpack_from("<IBBHQQ", self.bytes, entry)
                symbol = self.text(self.headers[link][4] + word)
                if symbol.startswith("ddprun_seldom_"):
                    found[symbol.removeprefix("ddprun_seldom_")] = value
        return found


def frames(address, table):
    """(address of the entry, of its head, of its code) for each piece of code, from .eh_frame."""
    found, at = [], 0
    while at < len(table):
        size, = struct.unpack_from("<I", table, at)
        if size == 0:
            check(at == len(table) - 4, f".eh_frame ends at byte {at} of {len(table)}")
            return found
        back, start = struct.unpack_from("<Ii", table, at + 4)
        if back != 0:
            found.append((address + at, address + at + 4 - back, address + at + 8 + start))
        at += 4 + size
    fail(".eh_frame has no end")


def index(address, table):
    """[(address of the code, address of the entry)]"""
    encodings = tuple(table[:4])
    check(encodings == (1, FROM_PLACE, 0x03, FROM_INDEX), f"the index has the encodings {encodings}")
    count, = struct.unpack_from("<I", table, 8)
    check(len(table) >= 12 + 8 * count, f"the index is too short for {count} entries")
    return [(address + code, address + entry) for code, entry in struct.iter_unpack("<ii", table[12:12 + 8 * count])]


def check_parts(entries, marks, text):
    """How many are put apart. `text`: all code but what is put apart and a little with names of its own."""
    def is_seldom(what, at):
        return marks[what + "_begin"] <= at < marks[what + "_end"]

    apart = 0
    for entry, head, code in entries:
        seldom = is_seldom("frames", entry)
        apart += seldom
        check(seldom or not is_seldom("frames", head), f"the entry of {code:#x} has its head in the seldom used part")
        check(not seldom or code not in text, f"the entry of {code:#x} is in the seldom used part, the code is not")
    check(apart > 0.9 * sum(is_seldom("code", code) for _, _, code in entries), f"only {apart} entries are put apart")
    return apart


def main():
    program = Program(sys.argv[1])
    entries = frames(*program.section(".eh_frame"))
    indexed = index(*program.section(".eh_frame_hdr"))
    check(indexed == sorted(indexed), "the index is not sorted")
    check(indexed == sorted((code, entry) for entry, _, code in entries),
          f"the index has {len(indexed)} entries, .eh_frame {len(entries)}, or others")
    marks = program.marks()
    if "frames_begin" not in marks:
        print(f"{len(entries)} entries; this linker has put nothing apart")
        return
    begin, text = program.section(".text")
    apart = check_parts(entries, marks, range(begin, begin + len(text)))
    print(f"{len(entries)} entries, of which {apart} are seldom used")


if __name__ == "__main__":
    main()

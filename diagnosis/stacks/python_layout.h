// Where CPython keeps what a stack is read from: one layout for each minor version. Pure.
//
// Up to 3.12 CPython does not say it; these are tables, measured with offsetof() on x86-64 Linux.
// AArch64 has the same: what differs in size there (pthread_mutex_t) lies behind all fields that
// are read. From 3.13 on, `_PyRuntime` begins with a description of itself (_Py_DebugOffsets),
// which is read.
//
// Source: Include/internal/pycore_runtime.h, pycore_interp.h, pycore_frame.h, cpython/code.h and
// cpython/unicodeobject.h of CPython 3.9 to 3.14; pycore_debug_offsets.h.
#pragma once

#include "diagnosis/stacks/memory.h"

namespace ddprun::agent {

// How a code object says which line an instruction belongs to (python_lines.h).
enum class LineTable { lnotab, ranges, locations };

// All in bytes from the begin of the structure. `kAbsent`: this version has no such field.
struct PythonLayout {
    static constexpr Address kAbsent = ~Address{0};
    int minor = 0;  // of 3.x
    struct Runtime {
        Address interpreters = 0;
        Address gil = kAbsent;  // up to 3.11, the global interpreter lock is in the runtime
    } runtime;
    struct Interpreter {
        Address next = 0, threads = 0;
        Address gil_pointer = kAbsent;  // 3.12: a pointer to the lock
        Address gil = kAbsent;          // from 3.13: the lock itself
    } interpreter;
    struct Gil {
        Address holder = 0, locked = 0;
    } gil;
    struct Thread {
        Address next = 0;
        Address native_id = kAbsent;   // the kernel's number, from 3.11
        Address pthread_id = kAbsent;  // the C library's
        Address frame = 0;             // of the C frame in 3.11 and 3.12
        Address frame_in_c_frame = kAbsent;
    } thread;
    struct Frame {
        Address previous = 0, code = 0;
        Address instruction = 0;  // up to 3.10 the number of an instruction, then its address
        Address owner = kAbsent;
    } frame;
    struct Code {
        Address file = 0, name = 0, first_line = 0, lines = 0;
        Address instructions = kAbsent;
    } code;
    struct Text {
        Address length = 16, state = 32, ascii = 48, compact = 72;
    } text;
    struct Bytes {
        Address size = 16, first = 32;
    } bytes;
    LineTable line_table = LineTable::locations;
};

struct PythonRuntime {
    Address address = 0;  // of _PyRuntime; 0: there is none
    int minor = 0;        // 11: it is Python 3.11; 0: not known
};

// Looks for the interpreter in a program or library that is loaded. `name` is that of its file
// ("libpython3.10.so.1.0"): 3.9 and 3.10 tell their version nowhere else.
PythonRuntime find_python(Memory& memory, Address load, const std::string& name);

// Nothing for a version that is not known, or is built without the GIL (3.13t).
std::optional<PythonLayout> python_layout(Memory& memory, const PythonRuntime& runtime);

}  // namespace ddprun::agent

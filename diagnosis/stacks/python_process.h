// Finds CPython in a living process and reads its stacks. The process is not stopped.
//
// Works for CPython 3.9 to 3.13 with the GIL, and for 3.14 as its headers describe it. The
// interpreter may be in the program or in libpython, and the process may be stopped or wait in the
// kernel. Needs the right to read the memory: as root, as the same user without Yama, or as an
// ancestor with ptrace_scope 1.
//
// Thread: one of its own. The kernel lets nobody read the memory of a process while another of its
// threads changes its address space, and that one may hang.
#pragma once

#include <string>
#include <vector>

#include "diagnosis/stacks/python_stack.h"

namespace ddprun::agent {

// A program or library, loaded in a process, that may have the interpreter in it.
struct LoadedFile {
    Address load = 0;  // where its first page is
    std::string name;  // "python3.11" or "libpython3.11.so.1.0"
};

// The program, and each libpython.
std::vector<LoadedFile> loaded_files(std::int64_t pid);

struct PythonProcess {
    bool is_python = false;
    std::vector<PythonThread> threads;
    // Why there are no threads although it is Python, after "because"; empty when there are.
    std::string problem;
};

PythonProcess read_python(std::int64_t pid, Threads which = Threads::all);

}  // namespace ddprun::agent

// Reads the stacks of all threads of a CPython process from its memory, without stopping it. Pure.
//
// The process runs on meanwhile. A thread that changes its frames while they are read may show a
// mixture; one that hangs shows what is true, and so does a process that is stopped or that waits
// in the kernel.
#pragma once

#include <string>
#include <vector>

#include "diagnosis/stacks/memory.h"
#include "diagnosis/stacks/python_layout.h"

namespace ddprun::agent {

struct PythonFrame {
    std::string file;
    std::string function;  // with its class from 3.11 on: "Trainer.evaluate"
    int line = 0;          // 0: not known
    bool operator==(const PythonFrame&) const = default;
};

struct PythonThread {
    std::int64_t id = 0;  // the kernel's number; 0: not known
    bool holds_gil = false;
    std::vector<PythonFrame> frames;  // the innermost first
    bool cut = false;                 // there are more frames
    bool operator==(const PythonThread&) const = default;
};

enum class Threads { all, main };

// The oldest thread first, which usually is the main thread; only that one if asked for. Empty when
// nothing makes sense.
std::vector<PythonThread> python_stack(Memory& memory, const PythonRuntime& runtime,
                                       const PythonLayout& layout, Threads which = Threads::all);

// Whether a frame is the user's own: not of Python's library, not of an installed package, and not
// of an import ("<frozen importlib._bootstrap>").
bool is_users_own(const PythonFrame& frame);

// The operation of torch.distributed that a function has called, "all_reduce"; empty: none.
// `caller` is its index in `frames`, which begin with the innermost one.
std::string called_operation(const std::vector<PythonFrame>& frames, std::size_t caller);

// For example "evaluate (eval.py:88)".
std::string frame_text(const PythonFrame& frame);

}  // namespace ddprun::agent

// Reads what Python's faulthandler writes when a process gets a fatal signal. Pure.
//
// Where the memory of a process may not be read, this is the way to its functions: with
// PYTHONFAULTHANDLER=1 it writes them itself before it dies of SIGABRT, whoever holds the GIL.
//
// Source: _Py_DumpTracebackThreads() of CPython 3.9 to 3.14. The newest thread comes first, so the
// main thread is the last one:
//
//     Fatal Python error: Aborted
//
//     Current thread 0x00007f0b0c5c5740 (most recent call first):
//       File "/data/eval.py", line 88 in evaluate
#pragma once

#include <string>
#include <vector>

#include "diagnosis/stacks/kernel_stack.h"
#include "diagnosis/stacks/python_stack.h"

namespace ddprun::agent {

struct FaultDump {
    std::vector<std::string> before;  // the lines above it; all of them if there is none
    std::vector<PythonThread> threads;
};

// `lines`: the newest of a worker's output. The upper end of the dump may be missing.
FaultDump fault_dump(const std::vector<std::string>& lines);

// As look_at_process() shows them: the main thread's own functions first. Empty: no thread is
// known.
StackLines dump_lines(const FaultDump& dump);

}  // namespace ddprun::agent

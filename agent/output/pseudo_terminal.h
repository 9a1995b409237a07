// A pseudo terminal for one stream of a worker: the worker sees a terminal of the size of ddprun's,
// ddprun reads what it prints.
//
// The terminal changes nothing: no echo, no \n to \r\n, no Ctrl-S. It becomes nobody's controlling
// terminal. What the worker has written before its end can be read after it: a read of the kernel
// (4.5 and newer) first fetches what is under way. Thread: any.
#pragma once

#include <optional>

#include "base/error.h"
#include "base/system/unique_fd.h"

namespace ddprun::agent {

struct WindowSize {
    unsigned short rows = 0, columns = 0;
    bool operator==(const WindowSize&) const = default;
};

// The size of the terminal; nothing if `fd` is none.
std::optional<WindowSize> window_of(int fd);

struct PseudoTerminal {
    UniqueFd ours;     // non-blocking
    UniqueFd workers;  // close it after the worker's start
};
// Possible errors: internal (no descriptors or no pseudo terminals left, /dev/ptmx missing).
Result<PseudoTerminal> open_pseudo_terminal(WindowSize size);

void resize(int terminal, WindowSize size);

}  // namespace ddprun::agent

// Finds an exported symbol in a program or library that is loaded in a process. Pure.
//
// Only memory is read, not the file: it may lie on a file system that hangs, or be gone.
//
// Source: the ELF specification (System V ABI, chapters 4 and 5), elf(5), and the GNU hash table of
// glibc and binutils (DT_GNU_HASH).
#pragma once

#include <string_view>

#include "diagnosis/stacks/memory.h"

namespace ddprun::agent {

// The address of a symbol; 0 when it is not exported. `load` is where the first page of the file is
// mapped. Works for 64-bit files of this machine's byte order.
Address elf_symbol(Memory& memory, Address load, std::string_view name);

}  // namespace ddprun::agent

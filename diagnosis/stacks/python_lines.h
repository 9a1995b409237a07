// Reads the table by which a code object of CPython tells the line of an instruction. Pure.
//
// Source: Objects/lnotab_notes.txt of CPython 3.9 (lnotab) and 3.10 (ranges, PEP 626), and
// Objects/locations.md of 3.11 and later (locations, PEP 657).
#pragma once

#include <cstdint>
#include <string_view>

#include "diagnosis/stacks/python_layout.h"

namespace ddprun::agent {

// `offset`: of the instruction, in bytes from the first one. 0 when the instruction has no line.
// A table that is broken gives a wrong line or 0, and nothing worse.
int python_line(LineTable kind, std::string_view table, int first_line, std::int64_t offset);

}  // namespace ddprun::agent

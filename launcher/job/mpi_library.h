// Which MPI a program is linked to, as its file says (DT_NEEDED). What is loaded later, as by
// mpi4py, is not seen.
//
// Source: the ELF specification (System V ABI, chapter 5), elf(5); the names of the libraries are
// those of MPICH's ABI initiative (libmpi.so.12) and of Open MPI (libmpi.so.20, libmpi.so.40).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "launcher/plan/plan.h"

namespace ddprun::launcher {

// The libraries that an ELF file of 64 bits and this machine's byte order needs; none if it is
// something else, or is broken. Pure.
std::vector<std::string> needed_libraries(std::string_view file);

enum class Mpi {
    none,
    mpich,     // of its family: PMI-1
    open_mpi,  // PMIx only
};
// The library and what it is: {"libmpich.so.12", Mpi::mpich}. Pure.
struct MpiLibrary {
    std::string name;
    Mpi kind = Mpi::none;
};
MpiLibrary mpi_among(const std::vector<std::string>& libraries);

// What is to be warned of about the workers' program; empty: nothing. Possible errors: usage, when
// --pmi cannot serve it. Looks at the file; `path` is the PATH of the workers.
Result<std::string> check_mpi(const Plan& plan, const std::optional<std::string>& path);

}  // namespace ddprun::launcher

// Operations as calls of MPI that do not wait. All types of elements are there: MPI has none of 16
// bits, so these are moved as numbers of 16 bits and combined by operation.h's arithmetic, which is
// used for min and max of floating types, too: MPI would lose a NaN.
//
// Thread: one at a time, with MPI to itself (MpiSession::call).
#pragma once

#include <mpi.h>

#include <cstddef>
#include <vector>

#include "base/error.h"
#include "trainer/group/operation.h"

namespace ddprun::trainer {

// Calls that were begun together, and what they need until they have ended.
struct MpiCall {
    std::vector<MPI_Request> requests;
    std::vector<std::byte> result;  // of a reduce_scatter that works in place

    // The request of a call that is begun.
    MPI_Request* next() { return &requests.emplace_back(MPI_REQUEST_NULL); }
};

// Whether MPI can count the elements of a call: 2^31 - 1 for each rank. Errors: usage.
Result<void> check_size(const Operation& operation, int size);

// Begins a collective of at least one element, or a barrier. Returns a code of MPI.
int begin_collective(const Operation& operation, MPI_Comm group, int rank, int size, MpiCall& call);

// What remains to do when the call has ended.
void complete(const Operation& operation, int rank, int size, const MpiCall& call);

// The type as MPI moves it.
MPI_Datatype mpi_type(DataType type);

}  // namespace ddprun::trainer

// Reads what PyTorch's flight recorder tells of a worker. Pure: bytes in, calls out.
//
// The recorder of a worker has its newest calls of collectives (2000 of them,
// TORCH_FR_BUFFER_SIZE), each with the group, the number in this group, the operation, sizes and
// types of the tensors, and whether it has ended. Its JSON is the same for Gloo and for NCCL. A
// file that NCCL's recorder writes is a pickle instead: a program that builds objects. Such a file
// is kept for people and for PyTorch's own tools, and is not read here.
//
// Source: FlightRecorderDetail.hpp of PyTorch 2.15 (dump_json), version 2.10 of the format. Fields
// that an other version lacks are not needed, or the call is left out. The text is the worker's, so
// anything may be in it. Errors: what is no such JSON has no calls.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/model/recorded_calls.h"

namespace ddprun::agent {

// Bytes of a text that is read: eight times what the recorder usually has.
inline constexpr std::size_t kLongestDump = std::size_t{8} << 20;

// The calls of each group: those from some before the oldest one in which the worker waits, or else
// the newest. Groups in which it waits come first.
std::vector<rendezvous::RecordedCalls> read_flight_dump(std::string_view text, int rank);

// Puts ranks together that have recorded the same, and leaves out what a Report does not tell.
std::vector<rendezvous::RecordedCalls> put_together(
    std::vector<rendezvous::RecordedCalls> recorded);

}  // namespace ddprun::agent

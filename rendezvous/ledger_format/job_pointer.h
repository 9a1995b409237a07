// Where a job can be asked whose ledger lies in no folder. It stands in a small file in the folder
// where ledgers usually lie, ".ddprun/lab.8812.0.job", for as long as the job goes on. The job's
// first node writes it (launcher/job/pointer_file.h), and ddpctl reads it. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace ddprun::rendezvous {

struct JobPointer {
    std::string run_id;
    // Where its ledger lies, as --ledger has it ("etcd:HOST:PORT"); empty: in its leader's memory.
    std::string ledger;
    std::string host;  // where its nodes meet
    std::uint16_t port = 0;
    bool operator==(const JobPointer&) const = default;
};
inline constexpr std::string_view kPointerSuffix = ".job";

std::string to_json(const JobPointer& pointer);
// Possible errors: malformed; the sentence continues one that begins with the file's name.
Result<JobPointer> pointer_from_json(std::string_view text);

}  // namespace ddprun::rendezvous

// How all ranks agree on the snapshot that each of them loads, through the store. Rank 0 names a
// candidate, the newest first. All load it and answer. If one of them cannot, whatever the reason
// (a disk that fails on one node alone, a damaged file), rank 0 goes on to the next older one; a
// program that the snapshot does not fit (usage) ends the search.
//
// Thread: one. Errors: those of the store; timed_out, if a rank does not answer; malformed, if
// there are snapshots but none that all ranks can load; those of another rank, which the sentence
// names.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "trainer/snapshot/folder/snapshot.h"

namespace ddprun::trainer {

struct Candidate {
    SnapshotName name;
    bool from_base = false;
};

// `kind`: of the calls that are counted together, since all ranks make them in one order. `load`
// loads a candidate, and keeps what it has loaded: the last one that it was called with is the one
// that is returned. Empty: there is no snapshot.
Result<std::optional<Candidate>> resume_together(
    const Context& context, Store& store, SnapshotFolder& folder, const std::string& kind,
    std::chrono::milliseconds timeout, const std::function<Result<void>(const Candidate&)>& load);

}  // namespace ddprun::trainer

// FailureStory: how the ranks of a group tell each other, through the store, that a call failed.
// Each rank composes an error that names its own call, who is missing, and the first failure that
// any rank saw.
//
// It also finds ranks that wait for each other in different calls. One object for each connection
// to the store. Thread: one at a time, that of the connection.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "trainer/group/operation.h"
#include "trainer/group/rank_names.h"
#include "trainer/worker/store.h"

namespace ddprun::trainer {

class FailureStory {
  public:
    // `job`: the ranks of the group in the job, for messages.
    FailureStory(Store& store, int rank, int size, JobRanks job = {});

    // What failed on this rank.
    struct Failure {
        std::optional<Operation> call;  // none: between calls
        std::string what;               // the call in words, or what was done between calls
        Error reason;
        int lost = -1;  // the rank whose connection closed first; -1: unknown
    };

    // Tells the others and composes the error for the program. `cut` ends what still runs. It is
    // called when the others can read of the failure, because it wakes them.
    Error tell(const Failure& failure, const std::function<void()>& cut);

    // Only makes it the first failure, if there is none yet: for who finds it and cannot end the
    // call otherwise than by a cut. tell() follows, with the same call and reason.
    void announce(const Failure& failure);

    // Whether another rank has told that its group failed.
    bool elsewhere();

    // For a call that has waited for a while: says in the store in which call this rank waits, and
    // compares it with what another rank has said. The error if they differ.
    std::optional<Error> other_call(const Operation& mine);

    // Says in the store in which call of another group this rank has waited for a while; empty: in
    // none any more. For the ranks that miss it in this group.
    void waits_elsewhere(const std::string& call);

  private:
    Error mine(const Failure& failure) const;
    std::optional<Error> first_failure(const Error& mine);
    std::string others_at(const Failure& failure);
    std::string in_other_groups(const std::vector<int>& ranks);
    bool has_died(int other, int lost);

    Store& store_;
    const int rank_, size_;
    const JobRanks job_;
};

}  // namespace ddprun::trainer

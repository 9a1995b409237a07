// One key for each rank.
#include "trainer/group/meet.h"

#include "trainer/group/left_until.h"
#include "trainer/group/rank_names.h"

namespace ddprun::trainer {

Result<void> meet_all(const Context& context, Store& store, const std::string& place,
                      std::chrono::steady_clock::time_point deadline,
                      std::chrono::milliseconds timeout) {
    const auto key = [&](int rank) { return place + "/" + std::to_string(rank); };
    if (auto done = store.set(key(context.rank.value), "here"); !done) return done;
    for (int other = 0; other < context.world_size; ++other) {
        auto here = store.get(key(other), left_until(deadline));
        if (here) continue;
        if (here.error().code() != ErrorCode::timed_out) return here.error();
        return Error(ErrorCode::timed_out, name_rank(other, context.job_ranks) +
                                               " did not join the process group within " +
                                               std::to_string(timeout.count()) +
                                               " ms; see its log");
    }
    return {};
}

}  // namespace ddprun::trainer

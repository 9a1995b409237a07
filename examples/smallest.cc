// smallest: the smallest worker program. It finds its place in the job, meets the other workers,
// and adds up their ranks.
#include <cstdio>

#include "base/failure.h"
#include "trainer/backend/make_process_group.h"
#include "trainer/worker/error_file.h"

using namespace ddprun;
using namespace ddprun::trainer;

int main(int argc, char**) try {
    if (argc > 1) throw Failure(usage_error("takes no arguments"));
    // From the variables that ddprun or torchrun sets. Without them it is a world of one.
    const auto context = or_throw(Context::from_environment());
    // The three steps of every worker: connect to the store, make a process group, call a
    // collective. Gloo, because the value lies in host memory.
    auto store = or_throw(connect_store(context));
    auto group =
        or_throw(make_process_group(context, *store, {Backend::gloo, std::chrono::minutes(1), {}}));
    // In place: afterwards `value` holds the sum on every rank.
    float value[] = {static_cast<float>(context.rank.value)};
    or_throw(group->all_reduce(buffer_of(std::span<float>(value))));
    std::printf("rank %d of %d: the ranks add up to %g\n", context.rank.value, context.world_size,
                static_cast<double>(value[0]));
} catch (const Failure& failure) {
    std::fprintf(stderr, "smallest: %s\n", failure.what());
    // Also writes the error to the file that the launcher reads, and returns the exit code.
    return report_error(failure.error());
}

// smallest: the smallest worker program. It finds its place in the job, meets the other workers,
// and adds up their ranks.
#include <cstdio>

#include "trainer/backend/make_process_group.h"
#include "trainer/worker/error_file.h"

using namespace ddprun::trainer;

// The three steps of every worker: connect to the store, make a process group, call a collective.
static ddprun::Result<float> sum_of_ranks(const Context& context) {
    auto store = connect_store(context);
    if (!store) return store.error();
    // Gloo, because the value lies in host memory.
    auto group = make_process_group(context, **store, {Backend::gloo, std::chrono::minutes(1), {}});
    if (!group) return group.error();
    float value[] = {static_cast<float>(context.rank.value)};
    // In place: afterwards `value` holds the sum on every rank.
    if (auto done = (*group)->all_reduce(buffer_of(std::span<float>(value))); !done)
        return done.error();
    return value[0];
}

int main(int argc, char**) {
    if (argc > 1) {
        std::fprintf(stderr, "smallest: takes no arguments\n");
        return 2;
    }
    // From the variables that ddprun or torchrun sets. Without them it is a world of one.
    auto context = Context::from_environment();
    auto sum = context ? sum_of_ranks(*context) : ddprun::Result<float>(context.error());
    if (!sum) {
        std::fprintf(stderr, "smallest: %s\n", sum.error().sentence().c_str());
        // Also writes the error to the file that the launcher reads, and returns the exit code.
        return report_error(sum.error());
    }
    std::printf("rank %d of %d: the ranks add up to %g\n", context->rank.value, context->world_size,
                *sum);
}

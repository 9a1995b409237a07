// The smallest worker: finds its place, meets the others, adds up the ranks.
#include <cstdio>

#include "trainer/backend/make_process_group.h"
#include "trainer/worker/error_file.h"

using namespace ddprun::trainer;

static ddprun::Result<float> sum_of_ranks(const Context& context) {
    auto store = connect_store(context);
    if (!store) return store.error();
    auto group = make_process_group(context, **store, {Backend::gloo, std::chrono::minutes(1), {}});
    if (!group) return group.error();
    float value[] = {static_cast<float>(context.rank.value)};
    if (auto done = (*group)->all_reduce(buffer_of(std::span<float>(value))); !done)
        return done.error();
    return value[0];
}

int main() {
    auto context = Context::from_environment();
    auto sum = context ? sum_of_ranks(*context) : ddprun::Result<float>(context.error());
    if (!sum) {
        std::fprintf(stderr, "smallest: %s\n", sum.error().sentence().c_str());
        return report_error(sum.error());
    }
    std::printf("rank %d of %d: the ranks add up to %g\n", context->rank.value, context->world_size,
                *sum);
}

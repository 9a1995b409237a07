// smallest_mpi: the smallest worker program over MPI, for `ddprun --pmi`. It finds its place in the
// job, meets the other workers, and adds up their ranks.
#include <cstdio>

#include "trainer/mpi/mpi_group.h"
#include "trainer/worker/error_file.h"
#include "trainer/worker/or_throw.h"

using namespace ddprun;
using namespace ddprun::trainer;

int main(int argc, char**) try {
    if (argc > 1) throw Failure(usage_error("takes no arguments"));
    const auto context = or_throw(Context::from_environment());
    auto store = or_throw(connect_store(context));
    // It initialises MPI, and finalises it when it goes.
    auto group = or_throw(make_mpi_group(context, *store));
    float value[] = {static_cast<float>(context.rank.value)};
    or_throw(group->all_reduce(buffer_of(std::span<float>(value))));
    std::printf("rank %d of %d: over MPI the ranks add up to %g\n", context.rank.value,
                context.world_size, static_cast<double>(value[0]));
} catch (const Failure& failure) {
    std::fprintf(stderr, "smallest_mpi: %s\n", failure.what());
    return report_error(failure.error());
}

// A training's ranks over MPI, for mpi_trainer.sh: they add up 20 times. In the first generation
// the last rank is killed between two calls.
#include <signal.h>

#include <cstdio>

#include "trainer/mpi/mpi_group.h"
#include "trainer/worker/error_file.h"
#include "trainer/worker/or_throw.h"

using namespace ddprun;
using namespace ddprun::trainer;

int main() try {
    const auto context = or_throw(Context::from_environment());
    auto store = or_throw(connect_store(context));
    auto group = or_throw(make_mpi_group(context, *store));
    double sum = 0;
    for (int call = 0; call < 20; ++call) {
        if (call == 10 && context.generation.value == 0 && group->rank() == group->size() - 1)
            raise(SIGKILL);
        double value[] = {group->rank() + 1.0};
        or_throw(group->all_reduce_values(value));
        sum += value[0];
    }
    auto half = or_throw(group->split(group->rank() % 2));
    or_throw(half->barrier());
    std::printf("generation %ld rank %d of %d: %g, half %d\n", context.generation.value,
                group->rank(), group->size(), sum, half->size());
} catch (const Failure& failure) {
    std::fprintf(stderr, "mpi_trainer: %s\n", failure.what());
    return report_error(failure.error());
}

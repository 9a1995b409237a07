// The tests of process groups, over MPI: they make their groups with make_process_group(), which
// here makes one of trainer/mpi.
#include "trainer/backend/make_process_group.h"
#include "trainer/mpi/mpi_group.h"

namespace ddprun::trainer {

Result<std::unique_ptr<ProcessGroup>> make_process_group(const Context& context, Store& store,
                                                         const GroupOptions& options) {
    return make_mpi_group(context, store, options);
}

}  // namespace ddprun::trainer

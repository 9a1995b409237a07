// Only the ranks of a part make its communicator, so the other ranks need not wait for it.
#include "trainer/mpi/mpi_communicator.h"

#include <numeric>
#include <vector>

namespace ddprun::trainer {
namespace {

int make_of(const std::vector<int>& ranks, MPI_Comm* made) {
    MPI_Group world = MPI_GROUP_NULL, part = MPI_GROUP_NULL;
    int code = MPI_Comm_group(MPI_COMM_WORLD, &world);
    if (code == MPI_SUCCESS)
        code = MPI_Group_incl(world, static_cast<int>(ranks.size()), ranks.data(), &part);
    if (code == MPI_SUCCESS) code = MPI_Comm_create_group(MPI_COMM_WORLD, part, 0, made);
    if (code == MPI_SUCCESS) code = MPI_Comm_set_errhandler(*made, MPI_ERRORS_RETURN);
    if (part != MPI_GROUP_NULL) MPI_Group_free(&part);
    if (world != MPI_GROUP_NULL) MPI_Group_free(&world);
    return code;
}

}  // namespace

Result<std::unique_ptr<MpiCommunicator>> MpiCommunicator::make(MpiSession& session,
                                                               const Context& context) {
    std::vector<int> ranks = context.job_ranks;
    if (ranks.empty()) {
        ranks.resize(static_cast<std::size_t>(context.world_size));
        std::iota(ranks.begin(), ranks.end(), 0);
    }
    std::unique_ptr<MpiCommunicator> own(new MpiCommunicator(session));
    auto done = session.call([&] { return make_of(ranks, &own->communicator_); });
    if (!done) return done.error();
    return own;
}

// The program may have finalised MPI before: then there is nothing to free.
MpiCommunicator::~MpiCommunicator() {
    if (communicator_ == MPI_COMM_NULL) return;
    (void)session_.call([this] {
        int over = 0;
        MPI_Finalized(&over);
        return over ? MPI_SUCCESS : MPI_Comm_free(&communicator_);
    });
}

}  // namespace ddprun::trainer

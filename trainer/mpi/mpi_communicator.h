// MpiCommunicator: the communicator of a group. Its errors come as codes; MPI would end the process
// otherwise.
#pragma once

#include <mpi.h>

#include <memory>

#include "trainer/mpi/mpi_session.h"

namespace ddprun::trainer {

class MpiCommunicator {
  public:
    // All ranks of the context call it, at about the same time: MPI waits for them without an end.
    // `session` must outlive it. Errors: those of MpiSession::call().
    static Result<std::unique_ptr<MpiCommunicator>> make(MpiSession& session,
                                                         const Context& context);
    ~MpiCommunicator();
    MpiCommunicator(const MpiCommunicator&) = delete;
    MpiCommunicator& operator=(const MpiCommunicator&) = delete;

    MPI_Comm get() const { return communicator_; }

  private:
    explicit MpiCommunicator(MpiSession& session) : session_(session) {}

    MpiSession& session_;
    MPI_Comm communicator_ = MPI_COMM_NULL;
};

}  // namespace ddprun::trainer

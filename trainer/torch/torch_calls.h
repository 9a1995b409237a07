// TorchCalls: the collectives of c10d's Gloo, the one inside libtorch.
//
// One thread makes all calls, in the same order on all ranks, with equal shapes: if two ranks
// disagree on a size, Gloo ends the process. Any thread may call abort(). Failures are exceptions;
// error_of_torch() translates them. This header is without libtorch's.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "trainer/group/operation.h"
#include "trainer/torch/call_outcome.h"
#include "trainer/torch/new_sockets.h"
#include "trainer/worker/context.h"

namespace ddprun::trainer {

class TorchCalls {
  public:
    // Connects to all other ranks. `prefix`: of c10d's keys in the store that the context names.
    // `connect`: limits connecting; `call`: each call. `ask_other_ranks`: see CallOutcome. Throws.
    TorchCalls(const Context& context, const std::string& prefix, std::chrono::milliseconds connect,
               std::chrono::milliseconds call, std::function<void()> ask_other_ranks);
    // Waits for c10d's threads, unless abort() was called. libtorch's Gloo then may wait for a send
    // that it has forgotten, so it is left behind on purpose.
    ~TorchCalls();
    TorchCalls(const TorchCalls&) = delete;
    TorchCalls& operator=(const TorchCalls&) = delete;

    // Carries out a collective of at least one element, or a barrier.
    void run(const Operation& operation);

    // Sends to one rank and receives from another, at the same time. Only messages with the same
    // tag meet.
    void exchange(int tag, std::optional<Buffer> out, int to, std::optional<Buffer> in, int from);

    // Cuts the connections and ends all sends and receives. The other ranks see the cut.
    void abort();
    bool aborted() const;

    // The connections to the other ranks.
    const NewSockets& sockets() const;

  private:
    struct Gloo;  // libtorch's side
    std::unique_ptr<Gloo> gloo_;
};

// The code and the sentence for an exception of libtorch.
Error error_of_torch(const std::exception& exception);

}  // namespace ddprun::trainer

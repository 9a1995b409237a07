// Agrees on the backend, and makes the group.
#include "trainer/backend/make_process_group.h"

#include <chrono>

#include "trainer/choice/backend_choice.h"
#include "trainer/gloo/process_group_gloo.h"
#include "trainer/nccl/process_group_nccl.h"

namespace ddprun::trainer {

Result<std::unique_ptr<ProcessGroup>> make_process_group(const Context& context, Store& store,
                                                         const GroupOptions& options) {
    const auto deadline = std::chrono::steady_clock::now() + options.timeout;
    CallTeller teller;
    const CallTeller::Call told(teller, kMeetingCall, 0);
    auto own = another_of_kind(store, "group", context.rank);
    if (!own) return own.error();
    auto backend = agree_on_backend(context, **own, options, deadline);
    if (!backend) return backend.error();
    return *backend == Backend::nccl ? make_nccl_group(context, std::move(*own), options, deadline)
                                     : make_gloo_group(context, std::move(*own), options, deadline);
}

}  // namespace ddprun::trainer

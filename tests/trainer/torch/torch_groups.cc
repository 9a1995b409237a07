// The tests of process groups and reducers, with libtorch's Gloo: they make their groups with
// make_process_group(), which here makes one of trainer/torch. The real one would link another
// Gloo.
#include "trainer/backend/make_process_group.h"
#include "trainer/torch/torch_group.h"

namespace ddprun::trainer {

Result<std::unique_ptr<ProcessGroup>> make_process_group(const Context& context, Store& store,
                                                         const GroupOptions& options) {
    return make_torch_group(context, store, options);
}

}  // namespace ddprun::trainer

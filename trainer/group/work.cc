// The handle on something that is already over.
#include "trainer/group/work.h"

#include <utility>

namespace ddprun::trainer {
namespace {

struct Over final : Work::State {
    explicit Over(Result<void> given) : result(std::move(given)) {}
    Result<void> wait() override { return result; }
    Result<void> wait(GpuStream) override { return result; }
    bool done() override { return true; }
    Work::Time ended() override { return {}; }

    const Result<void> result;
};

}  // namespace

Work Work::finished(Result<void> result) { return Work(std::make_shared<Over>(std::move(result))); }

}  // namespace ddprun::trainer

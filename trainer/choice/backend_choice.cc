// Every rank writes its GPU to the store, rank 0 chooses the backend, the others read the choice.
#include "trainer/choice/backend_choice.h"

#include <algorithm>
#include <map>

#include "trainer/gpu/gpu.h"
#include "trainer/group/left_until.h"
#include "trainer/nccl/process_group_nccl.h"

namespace ddprun::trainer {
namespace {

// Keys in the group's own part of the store. An offer is a rank's GPU, or "-" for none.
constexpr char kOffer[] = "offer/";
constexpr char kChoice[] = "choice";

// The unique name of this worker's GPU, or nothing if NCCL cannot use one here.
std::string own_gpu(const Context& context, Backend wanted) {
    if (wanted == Backend::gloo) return "";
    const int index = context.gpu_index(gpu_count());
    return index < 0 || !nccl_loads(nullptr) ? "" : gpu_name(index);
}

using Clock = std::chrono::steady_clock;

// Rank 0 only: reads the offers of all ranks and applies the rule.
Result<BackendChoice> choose(const Context& context, Store& store, Clock::time_point deadline) {
    std::vector<std::string> gpus;
    for (int rank = 0; rank < context.world_size; ++rank) {
        auto offer = store.get(kOffer + std::to_string(rank), left_until(deadline));
        if (!offer) {
            return Error(offer.error().code(),
                         "rank " + std::to_string(rank) +
                             " did not join the process group: " + offer.error().sentence());
        }
        gpus.push_back(*offer == "-" ? "" : *offer);
    }
    return choose_backend(gpus);
}

// Rank 0 decides and writes "gloo <reason>", "nccl <reason>" or "error <sentence>". The other ranks
// read that. Only one rank decides, so the ranks cannot come to different answers.
Result<BackendChoice> agree(const Context& context, Store& store, Clock::time_point deadline) {
    if (context.is_first()) {
        auto chosen = choose(context, store, deadline);
        std::string word = !chosen                            ? "error " + chosen.error().sentence()
                           : chosen->backend == Backend::nccl ? "nccl " + chosen->reason
                                                              : "gloo " + chosen->reason;
        if (auto done = store.set(kChoice, word); !done) return done.error();
        return chosen;
    }
    // Rank 0 may use its whole timeout to wait for the offers. This rank waits a little longer, so
    // that it reads which rank is missing and does not report only its own timeout.
    auto word = store.get(kChoice, left_until(deadline) + std::chrono::seconds(2));
    if (!word) return word.error();
    const std::string reason = word->substr(std::min<std::size_t>(5, word->size()));
    if (word->starts_with("nccl ")) return BackendChoice{Backend::nccl, reason};
    if (word->starts_with("gloo ")) return BackendChoice{Backend::gloo, reason};
    return Error(ErrorCode::unavailable, word->starts_with("error ") ? word->substr(6) : *word);
}

}  // namespace

BackendChoice choose_backend(const std::vector<std::string>& gpus) {
    // Which rank was the first to name a GPU.
    std::map<std::string, std::size_t> owner;
    for (std::size_t rank = 0; rank < gpus.size(); ++rank) {
        const std::string name = "rank " + std::to_string(rank);
        if (gpus[rank].empty()) return {Backend::gloo, name + " has no GPU that NCCL can use"};
        auto [entry, is_new] = owner.emplace(gpus[rank], rank);
        if (!is_new)
            return {Backend::gloo, "ranks " + std::to_string(entry->second) + " and " +
                                       std::to_string(rank) + " share the GPU " + gpus[rank]};
    }
    return {Backend::nccl, "every rank has a GPU of its own"};
}

Result<Backend> agree_on_backend(const Context& context, Store& own, const GroupOptions& options,
                                 std::chrono::steady_clock::time_point deadline) {
    // Gloo works everywhere, so there is nothing to agree on.
    if (options.backend == Backend::gloo) return Backend::gloo;
    std::string gpu = own_gpu(context, options.backend);
    const std::string key = kOffer + std::to_string(context.rank.value);
    if (auto done = own.set(key, gpu.empty() ? "-" : gpu); !done) return done.error();
    auto choice = agree(context, own, deadline);
    if (!choice) return choice.error();
    if (choice->backend == Backend::nccl) return Backend::nccl;
    // The choice is Gloo, but the program insists on NCCL.
    if (options.backend == Backend::nccl) {
        return Error(ErrorCode::refused, "NCCL cannot be used: " + choice->reason + " (" +
                                             gpu_state() + " here); use Gloo");
    }
    if (options.note) options.note("using Gloo: " + choice->reason + " (" + gpu_state() + " here)");
    return Backend::gloo;
}

}  // namespace ddprun::trainer

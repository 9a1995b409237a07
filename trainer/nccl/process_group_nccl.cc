// The NCCL backend. NCCL does not check that the ranks make the same call; if they do not, it may
// hang. So the ranks compare their first calls (GroupOptions::checked_calls) through the store.
#include "trainer/nccl/process_group_nccl.h"

#include <cuda_runtime_api.h>

#include "trainer/gpu/gpu.h"
#include "trainer/nccl/nccl_comm.h"
#include "trainer/nccl/nccl_library.h"

namespace ddprun::trainer {
namespace {

constexpr char kCall[] = "nccl/call/";  // + number of the call: rank 0's opinion

class NcclGroup final : public ProcessGroup {
  public:
    NcclGroup(const Context& context, std::unique_ptr<Store> store, const GroupOptions& options,
              const NcclLibrary& nccl, int gpu)
        : ProcessGroup(context, std::move(store), options),
          nccl_(nccl),
          gpu_(gpu),
          comm_(nccl, gpu, options.timeout, [this] { return failed_elsewhere(); }) {}

    // The thread ends before the communicator that it uses.
    ~NcclGroup() override { stop(); }

    const char* backend() const override { return "nccl"; }
    Memory memory() const override { return Memory::gpu; }

    // Only sets a flag. One thread at a time may use the communicator, and that is the polling one.
    void abort() override { comm_.ask_to_abort(); }

    Result<void> connect() { return comm_.connect(store(), rank(), size()); }

  protected:
    // Marks where the caller's stream is now. Each operation has its own event. With one event for
    // all, a bucket would also wait for kernels that backward launched after it.
    std::shared_ptr<Started> start(const Operation&, bool) override {
        auto begun = std::make_shared<Begun>();
        begun->before = comm_.mark_caller();
        return begun;
    }

    // start() always returns an object. Its event may be null, which comm_ reports.
    Result<void> run(const Operation& operation, Started* started) override {
        if (operation.is_collective() && operation.sequence <= options().checked_calls) {
            if (auto agreed = agree(operation); !agreed) return agreed;
        }
        return comm_.run(operation, static_cast<Begun*>(started)->before.get());
    }

    // ncclCommSplit is a call of all ranks of the parent, also of those that join no part.
    Result<std::unique_ptr<ProcessGroup>> split_backend(const Context& place,
                                                        std::unique_ptr<Store> own,
                                                        int color) override {
        auto part = std::make_unique<NcclGroup>(place, std::move(own), options(), nccl_, gpu_);
        if (auto done = part->comm_.split_from(comm_, color, rank()); !done) return done.error();
        if (color < 0) return std::unique_ptr<ProcessGroup>();
        return std::unique_ptr<ProcessGroup>(std::move(part));
    }

    // NCCL reads and writes only GPU memory, so numbers in host memory are copied there and back.
    Result<Buffer> stage(Buffer host) override {
        auto memory = comm_.scratch(host.bytes());
        if (!memory) return memory.error();
        if (auto p = cudaMemcpy(*memory, host.data, host.bytes(), cudaMemcpyHostToDevice))
            return Error(ErrorCode::unavailable, cudaGetErrorString(p));
        return Buffer{*memory, host.count, host.type};
    }

    Result<void> take_back(Buffer staged, Buffer host) override {
        if (auto p = cudaMemcpy(host.data, staged.data, host.bytes(), cudaMemcpyDeviceToHost))
            return Error(ErrorCode::unavailable, cudaGetErrorString(p));
        return {};
    }

  private:
    struct Begun final : Started {
        NcclComm::Event before;
    };

    // Rank 0 writes which call it makes, the others compare. That takes one message for each rank.
    // A comparison of all pairs would take one for each pair.
    Result<void> agree(const Operation& operation) {
        const Opinion mine = opinion_of(operation);
        const std::string key = kCall + std::to_string(operation.sequence);
        if (rank() == 0) {
            return store().set(key, {reinterpret_cast<const char*>(&mine), sizeof mine});
        }
        auto said = store().get(key, timeout());
        if (!said) return said.error();
        // A value that is too short leaves zeros. No call has the number 0, so the comparison
        // fails.
        Opinion first{};
        said->copy(reinterpret_cast<char*>(&first), sizeof first);
        if (first == mine) return {};
        return Error(ErrorCode::refused, disagreement(mine, first, 0));
    }

    const NcclLibrary& nccl_;
    const int gpu_;
    NcclComm comm_;
};

}  // namespace

bool nccl_loads(std::string* why) {
    auto library = nccl_library();
    if (!library && why) *why = library.error().sentence();
    return static_cast<bool>(library);
}

Result<std::unique_ptr<ProcessGroup>> make_nccl_group(const Context& context,
                                                      std::unique_ptr<Store> store,
                                                      const GroupOptions& options) {
    auto nccl = nccl_library();
    if (!nccl) return nccl.error();
    // Which GPU is this worker's depends on how many of them the launcher lets it see.
    const int gpu = context.gpu_index(gpu_count());
    if (gpu < 0) return Error(ErrorCode::unavailable, "NCCL needs a GPU: " + gpu_state() + " here");
    auto group = std::make_unique<NcclGroup>(context, std::move(store), options, **nccl, gpu);
    if (auto done = group->connect(); !done) {
        return Error(done.error().code(), "rank " + std::to_string(context.rank.value) + " of " +
                                              std::to_string(context.world_size) +
                                              " cannot connect: " + done.error().sentence());
    }
    return std::unique_ptr<ProcessGroup>(std::move(group));
}

}  // namespace ddprun::trainer

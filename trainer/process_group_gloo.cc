// Gloo, the CPU backend. Gloo ends the process when two ranks disagree on a size (its receiver
// thread throws), so the ranks agree on each new shape of call before data moves: a 48-byte
// all-gather, once a shape. Every shape has its own tag, so that messages of two shapes never meet
// even when one rank thinks it has agreed already.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <tuple>
#include <vector>

#include "trainer/gloo_mesh.h"
#include "trainer/no_pipe_signal.h"
#include "trainer/process_group.h"

namespace ddprun::trainer {
namespace {

template <class T>
::gloo::AllreduceOptions::Func function_of(ReduceOp op) {
    using Function = void (*)(void*, const void*, const void*, std::size_t);
    switch (op) {
        case ReduceOp::min:
            return static_cast<Function>(&::gloo::min<T>);
        case ReduceOp::max:
            return static_cast<Function>(&::gloo::max<T>);
        default:
            return static_cast<Function>(&::gloo::sum<T>);
    }
}

// Dividing after the sum rounds once; dividing before would be safe from overflow but rounds twice.
template <class T>
void divide(Buffer buffer, int by) {
    T* values = static_cast<T*>(buffer.data);
    for (std::size_t i = 0; i < buffer.count; ++i) values[i] /= static_cast<T>(by);
}

class GlooGroup final : public ProcessGroup {
  public:
    GlooGroup(const Context& context, Store& store, std::chrono::milliseconds timeout,
              std::unique_ptr<GlooMesh> mesh)
        : ProcessGroup(context, store, timeout), mesh_(std::move(mesh)) {}

    const char* backend() const override { return "gloo"; }
    Memory memory() const override { return Memory::host; }

    void abort() override {
        if (mesh_) mesh_->cut();
    }

  protected:
    Result<void> run(const Call& call) override {
        if (size() == 1) return {};
        const NoPipeSignal guard;  // Gloo writes without MSG_NOSIGNAL: a dead rank must not end
                                   // this one by a signal
        try {
            if (auto agreed = agree(call); !agreed) return agreed;
            move(call);
            return {};
        } catch (const std::exception& problem) {
            Error error = error_of_gloo(problem);
            const int other = mesh_->rank_in(problem.what());
            if (other < 0) return error;
            return Error(error.code(), "rank " + std::to_string(other) + ": " + error.sentence());
        }
    }

  private:
    using Shape = std::tuple<Kind, DataType, std::size_t, ReduceOp, int>;

    // One rank's opinion on the call, as it travels.
    struct Opinion {
        std::uint64_t sequence, count;
        std::uint32_t kind, type, op, root;
        bool operator==(const Opinion&) const = default;
    };

    Result<void> agree(const Call& call) {
        const Shape shape(call.kind, call.buffer.type, call.buffer.count, call.op, call.root);
        if (agreed_.contains(shape)) return {};
        Opinion mine{call.sequence,
                     call.buffer.count,
                     static_cast<std::uint32_t>(call.kind),
                     static_cast<std::uint32_t>(call.buffer.type),
                     static_cast<std::uint32_t>(call.op),
                     static_cast<std::uint32_t>(call.root)};
        std::vector<Opinion> all(size());
        ::gloo::AllgatherOptions options(mesh_->context());
        options.setInput(reinterpret_cast<char*>(&mine), sizeof mine);
        options.setOutput(reinterpret_cast<char*>(all.data()), all.size() * sizeof mine);
        ::gloo::allgather(options);
        for (int other = 0; other < size(); ++other) {
            if (!(all[other] == mine)) return disagreement(call, all[other], other);
        }
        agreed_.insert(shape);
        return {};
    }

    Error disagreement(const Call& call, const Opinion& theirs, int other) const {
        Call that{static_cast<Kind>(theirs.kind),
                  {nullptr, theirs.count, static_cast<DataType>(theirs.type)},
                  static_cast<ReduceOp>(theirs.op),
                  static_cast<int>(theirs.root),
                  theirs.sequence};
        return Error(ErrorCode::refused,
                     "rank " + std::to_string(other) + " calls " + describe(that) + " (operator " +
                         std::to_string(theirs.op) + ", root " + std::to_string(theirs.root) +
                         "), this rank " + describe(call) + " (operator " +
                         std::to_string(static_cast<int>(call.op)) + ", root " +
                         std::to_string(call.root) +
                         "); all ranks must make the same calls in the same order");
    }

    void move(const Call& call) {
        if (call.kind == Kind::barrier || call.buffer.count == 0) return barrier_now();
        if (call.kind == Kind::broadcast) return broadcast_now(call);
        switch (call.buffer.type) {
            case DataType::float32:
                return reduce_now<float>(call);
            case DataType::float64:
                return reduce_now<double>(call);
            case DataType::int32:
                return reduce_now<std::int32_t>(call);
            default:
                return reduce_now<std::int64_t>(call);
        }
    }

    // Tag 0 stays the agreement's. Shapes are numbered by what they are, not by when they came: a
    // rank that has not agreed on one must still use the same tag.
    static std::uint32_t tag_of(const Call& call) {
        std::uint64_t hash = call.buffer.count * 0x9E3779B97F4A7C15u;
        hash ^= (static_cast<std::uint64_t>(call.buffer.type) << 8) +
                static_cast<std::uint64_t>(call.op);
        hash *= 0xC2B2AE3D27D4EB4Fu;
        return static_cast<std::uint32_t>(hash >> 33) | 1u;
    }

    template <class T>
    void reduce_now(const Call& call) {
        ::gloo::AllreduceOptions options(mesh_->context());
        // The ring adds in one fixed order, so all ranks get the same bits, and each run the same
        // as the last.
        options.setAlgorithm(::gloo::AllreduceOptions::Algorithm::RING);
        options.setOutput(static_cast<T*>(call.buffer.data), call.buffer.count);
        options.setReduceFunction(function_of<T>(call.op));
        options.setTag(tag_of(call));
        ::gloo::allreduce(options);
        if (call.op == ReduceOp::avg) divide<T>(call.buffer, size());
    }

    void broadcast_now(const Call& call) {
        ::gloo::BroadcastOptions options(mesh_->context());
        const std::size_t bytes = call.buffer.count * size_of(call.buffer.type);
        options.setOutput(static_cast<char*>(call.buffer.data), bytes);
        options.setRoot(call.root);
        options.setTag(tag_of(call));
        ::gloo::broadcast(options);
    }

    void barrier_now() {
        ::gloo::BarrierOptions options(mesh_->context());
        ::gloo::barrier(options);
    }

    std::unique_ptr<GlooMesh> mesh_;  // null in a world of one
    std::set<Shape> agreed_;
};

}  // namespace

Result<std::unique_ptr<ProcessGroup>> make_gloo_group(const Context& context, Store& store,
                                                      std::chrono::milliseconds timeout) {
    std::unique_ptr<GlooMesh> mesh;
    if (context.world_size > 1) {
        auto made = GlooMesh::connect(context, store, timeout);
        if (!made) return made.error();
        mesh = std::move(*made);
    }
    return std::unique_ptr<ProcessGroup>(
        std::make_unique<GlooGroup>(context, store, timeout, std::move(mesh)));
}

}  // namespace ddprun::trainer

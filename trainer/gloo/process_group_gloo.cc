// Gloo, the CPU backend. Gloo ends the process when two ranks disagree on a size (its receiver
// thread throws), so the ranks agree on each new shape of call before data moves: a 40-byte
// all-gather, for the first calls always and later once a shape. Every call has its own channel, of
// its shape and number, so that messages of two calls never meet even when one rank thinks it has
// agreed already, or has sent the first messages before.
// Between two ranks a header goes before the data.
#include "trainer/gloo/process_group_gloo.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <mutex>
#include <set>
#include <tuple>
#include <vector>

#include "base/system/no_pipe_signal.h"
#include "trainer/gloo/gloo_mesh.h"

namespace ddprun::trainer {
namespace {

class GlooGroup final : public ProcessGroup {
  public:
    GlooGroup(const Context& context, std::unique_ptr<Store> store, const GroupOptions& options,
              std::unique_ptr<GlooMesh> mesh)
        : ProcessGroup(context, std::move(store), options), mesh_(std::move(mesh)) {}

    ~GlooGroup() override {
        stop();
        if (mesh_ && !failed()) mesh_->leave(store());
    }

    const char* backend() const override { return "gloo"; }
    Memory memory() const override { return Memory::host; }

    void abort() override {
        if (mesh_) mesh_->cut();
    }

  protected:
    // Not two at once on one buffer: those take their turns.
    std::shared_ptr<Started> start(const Operation& operation, bool caller_waits) override {
        if (size() == 1 || caller_waits) return nullptr;
        auto begun = std::make_shared<Begun>(*this, operation);
        if (!begun->alone()) return begun;
        const NoPipeSignal guard;
        try {
            if (operation.is_collective() && operation.sequence <= options().checked_calls)
                begun->agreement = begin_agreement(operation, begun->opinions);
            begun->ring = mesh_->calls().start(operation, channel_of(operation));
        } catch (const std::exception&) {
            // A connection is gone: run() will find the same, and say it.
        }
        return begun;
    }

    Result<void> run(const Operation& operation, Started* started) override {
        if (size() == 1) return run_alone(operation);
        const NoPipeSignal guard;  // Gloo writes without MSG_NOSIGNAL: a dead rank must not end
                                   // this one by a signal
        try {
            if (!operation.is_collective()) return pairwise(operation);
            auto* begun = static_cast<Begun*>(started);
            if (auto agreed = agree(operation, begun); !agreed) return agreed;
            if (begun && begun->ring) {
                mesh_->calls().finish(operation, *begun->ring);
                return {};
            }
            // What moves nothing still waits for all.
            mesh_->calls().run(operation.count() ? operation : Operation::barrier(),
                               channel_of(operation));
            return {};
        } catch (const std::exception& problem) {
            return explain(problem);
        }
    }

    Result<std::unique_ptr<ProcessGroup>> split_backend(const Context& place,
                                                        std::unique_ptr<Store> own,
                                                        int color) override {
        if (color < 0) return std::unique_ptr<ProcessGroup>();
        return make_gloo_group(place, std::move(own), options());
    }

  private:
    using Shape = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t, std::uint32_t, int>;

    // What was begun and is not done: its memory is known, and perhaps its first messages are out.
    struct Begun final : Started {
        Begun(GlooGroup& owner, const Operation& o) : group(owner), operation(o) {
            std::lock_guard lock(group.begun_mutex_);
            group.begun_.push_back(this);
        }
        ~Begun() override {
            ring.reset();
            agreement.reset();
            std::lock_guard lock(group.begun_mutex_);
            std::erase(group.begun_, this);
        }
        bool alone() const {
            std::lock_guard lock(group.begun_mutex_);
            return std::none_of(group.begun_.begin(), group.begun_.end(), [&](const Begun* other) {
                return other != this && overlaps(operation, other->operation);
            });
        }
        GlooGroup& group;
        const Operation operation;
        std::vector<Opinion> opinions;
        std::unique_ptr<GlooRing> agreement, ring;
    };

    static bool overlaps(const Operation& a, const Operation& b) {
        auto touch = [](const Buffer& x, const Buffer& y) {
            const auto *from = static_cast<const char*>(x.data),
                       *to = static_cast<const char*>(y.data);
            return std::less()(from, to + y.bytes()) && std::less()(to, from + x.bytes());
        };
        return touch(a.in, b.in) || touch(a.in, b.out) || touch(a.out, b.in) || touch(a.out, b.out);
    }

    // In a world of one, what comes out is what went in.
    static Result<void> run_alone(const Operation& o) {
        if (o.out.data != o.in.data && o.out.bytes())
            std::memcpy(o.out.data, o.in.data, o.out.bytes());
        return {};
    }

    // What Gloo saw is often only another rank's reaction: the watchers know who was first.
    Error explain(const std::exception& problem) {
        const Error error = error_of_gloo(problem);
        const int other = mesh_->rank_in(problem.what());
        const std::string seen =
            (other < 0 ? "" : "rank " + std::to_string(other) + ": ") + error.sentence();
        if (error.code() == ErrorCode::timed_out) return Error(error.code(), seen);
        const int lost = mesh_->first_lost(store());
        if (lost < 0) return Error(error.code(), seen);
        if (lost == rank()) return Error(ErrorCode::closed, "this rank's group was aborted");
        lose(lost);
        return Error(ErrorCode::closed, "the connection to rank " + std::to_string(lost) +
                                            " was closed: that rank has died or given up");
    }

    std::unique_ptr<GlooRing> begin_agreement(const Operation& operation,
                                              std::vector<Opinion>& all) {
        const Opinion mine = opinion_of(operation);
        all.resize(static_cast<std::size_t>(size()));
        return mesh_->calls().start_all_gather(&mine, all.data(), sizeof mine,
                                               kAgreements | operation.sequence);
    }

    Result<void> agree(const Operation& operation, Begun* begun) {
        const Opinion mine = opinion_of(operation);
        const Shape shape(mine.kind, mine.type, mine.count, mine.op, static_cast<int>(mine.root));
        const bool known = agreed_.contains(shape);
        if (known && operation.sequence > options().checked_calls) return {};
        std::vector<Opinion> own;
        const bool ahead = begun && begun->agreement;
        std::vector<Opinion>& all = ahead ? begun->opinions : own;
        (ahead ? std::move(begun->agreement) : begin_agreement(operation, own))->finish();
        for (int other = 0; other < size(); ++other) {
            const Opinion& theirs = all[static_cast<std::size_t>(other)];
            if (!(theirs == mine))
                return Error(ErrorCode::refused, disagreement(mine, theirs, other));
        }
        agreed_.insert(shape);
        return {};
    }

    // Both headers before any data: a count that differs is refused on both sides.
    Result<void> pairwise(const Operation& o) {
        const bool sends = o.kind != Collective::receive, receives = o.kind != Collective::send;
        std::uint64_t mine[2] = {o.in.count, static_cast<std::uint64_t>(o.in.type)};
        std::uint64_t wanted[2] = {o.out.count, static_cast<std::uint64_t>(o.out.type)};
        std::uint64_t theirs[2] = {};
        mesh_->calls().exchange(kHeader, sends ? mine : nullptr, sizeof mine, o.root,
                                receives ? theirs : nullptr, sizeof theirs, o.source);
        if (receives && std::memcmp(theirs, wanted, sizeof wanted)) {
            return Error(ErrorCode::refused,
                         "rank " + std::to_string(o.source) + " sends " +
                             std::to_string(theirs[0]) + " " +
                             std::string(to_string(static_cast<DataType>(theirs[1]))) +
                             ", this rank expects " + std::to_string(wanted[0]) + " " +
                             std::string(to_string(o.out.type)));
        }
        mesh_->calls().exchange(kData, sends ? o.in.data : nullptr, o.in.bytes(), o.root,
                                receives ? o.out.data : nullptr, o.out.bytes(), o.source);
        return {};
    }

    static std::uint64_t channel_of(const Operation& operation) {
        const Opinion o = opinion_of(operation);
        std::uint64_t hash = o.count * 0x9E3779B97F4A7C15u;
        hash ^= (std::uint64_t{o.kind} << 24) + (std::uint64_t{o.type} << 8) + o.op;
        hash = (hash ^ o.sequence * 0xD6E8FEB86659FD93u) * 0xC2B2AE3D27D4EB4Fu;
        return kCollectives | hash >> 8;
    }

    static constexpr std::uint64_t kHeader = 1, kData = 2;
    static constexpr std::uint64_t kCollectives = std::uint64_t{1} << 62;
    static constexpr std::uint64_t kAgreements = std::uint64_t{1} << 61;  // + the call's number

    std::unique_ptr<GlooMesh> mesh_;  // null in a world of one
    std::set<Shape> agreed_;
    std::mutex begun_mutex_;
    std::vector<Begun*> begun_;
};

}  // namespace

Result<std::unique_ptr<ProcessGroup>> make_gloo_group(const Context& context,
                                                      std::unique_ptr<Store> store,
                                                      const GroupOptions& options) {
    std::unique_ptr<GlooMesh> mesh;
    if (context.world_size > 1) {
        auto made = GlooMesh::connect(context, *store, options.timeout);
        if (!made) return made.error();
        mesh = std::move(*made);
    }
    return std::unique_ptr<ProcessGroup>(
        std::make_unique<GlooGroup>(context, std::move(store), options, std::move(mesh)));
}

}  // namespace ddprun::trainer

// The Gloo backend: agreement on each call before data moves, and the start of all-reduces ahead of
// their turn.
//
// If two ranks disagree on a size, Gloo ends the process: its receiving thread throws. So the ranks
// compare their opinions of a call first, in an all-gather of 32 bytes. They do so for the first
// calls of each shape (GroupOptions::checked_calls). Every call has its own channel, made from its
// shape and number. So messages of two different calls never meet, even if one rank believes that
// the call was agreed on already, or has sent its first messages ahead. Between two ranks a header
// with count and type goes before the data.
#include "trainer/gloo/process_group_gloo.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "base/system/no_pipe_signal.h"
#include "trainer/gloo/gloo_mesh.h"
#include "trainer/group/compared_calls.h"
#include "trainer/group/other_groups.h"
#include "trainer/group/queued_group.h"

namespace ddprun::trainer {
namespace {

class GlooGroup final : public QueuedGroup {
  public:
    GlooGroup(const Context& context, std::unique_ptr<Store> store, const GroupOptions& options,
              std::unique_ptr<GlooMesh> mesh)
        : QueuedGroup(context, std::move(store), options), mesh_(std::move(mesh)) {
        if (!mesh_) return;
        others_.emplace([this] { return long_call(); });
        mesh_->look_by([this](Store& own) { look_at_others(own); });
    }

    ~GlooGroup() override {
        stop();
        if (!mesh_) return;
        mesh_->look_by(nullptr);
        others_.reset();
        // No goodbye after a failure: the other ranks must take the end of this rank for a loss.
        if (!over()) mesh_->leave(store());
    }

    const char* backend() const override { return "gloo"; }
    Memory memory() const override { return Memory::host; }

  protected:
    void cut() override {
        if (mesh_) mesh_->cut();
    }

    // Sends the first messages of an all-reduce. A blocking call gains nothing from that. Two
    // operations on overlapping memory take turns, because the second one needs the result of the
    // first.
    std::shared_ptr<Started> start(const Operation& operation, bool caller_waits) override {
        if (size() == 1 || caller_waits) return nullptr;
        auto begun = std::make_shared<Begun>(*this, operation);
        if (!begun->alone()) return begun;
        const NoPipeSignal guard;
        try {
            if (operation.compared) begun->agreement = begin_agreement(operation, begun->opinions);
            begun->ring = mesh_->calls().start(operation, channel_of(operation));
        } catch (const std::exception&) {
            // A connection is closed. run() will notice it too, and reports it.
        }
        return begun;
    }

    Result<void> run(const Operation& operation, Started* started) override {
        if (size() == 1) return run_alone(operation);
        // Gloo writes to sockets without MSG_NOSIGNAL. A dead rank must not end this process by
        // SIGPIPE.
        const NoPipeSignal guard;
        const Waiting waiting(*this, operation);
        try {
            if (!operation.is_collective()) return pairwise(operation);
            auto* begun = static_cast<Begun*>(started);
            if (auto agreed = agree(operation, begun); !agreed) return agreed;
            if (begun && begun->ring) {
                begun->ring->finish();
                return {};
            }
            // A call without elements moves nothing, but it still waits for all ranks, as every
            // collective does.
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
    // The call that is being carried out, as long as it lives.
    class Waiting {
      public:
        Waiting(GlooGroup& group, const Operation& operation) : group_(group) { set(&operation); }
        ~Waiting() { set(nullptr); }

      private:
        void set(const Operation* operation) {
            std::lock_guard lock(group_.waiting_mutex_);
            group_.waiting_ = operation;
            group_.looked_ = false;
        }
        GlooGroup& group_;
    };

    // The watcher's thread, once a second. A call that was there the last time too may wait for a
    // rank that waits for us in another call.
    void look_at_others(Store& own) {
        FailureStory story(own, rank(), size(), context().job_ranks);
        others_->tell(story);
        Operation mine;
        {
            std::lock_guard lock(waiting_mutex_);
            if (!waiting_ || !std::exchange(looked_, true)) return;
            mine = *waiting_;
        }
        const auto other = story.other_call(mine);
        if (!other) return;
        {
            std::lock_guard lock(waiting_mutex_);
            if (!waiting_ || waiting_->sequence != mine.sequence) return;
            mismatch_ = other;
        }
        // Before the cut, which the other ranks would take for the first failure.
        story.announce({mine, describe(mine), *other, -1});
        mesh_->cut();
    }

    // The call that was there when this group's watcher looked last; see OtherGroups.
    std::optional<std::string> long_call() {
        std::lock_guard lock(waiting_mutex_);
        if (failing_) return std::nullopt;
        return waiting_ && looked_ ? describe(*waiting_) + " in " + group_name() : std::string();
    }

    // An operation that was begun and is not done. The group knows its memory from the list begun_.
    // Its first messages may already be sent.
    struct Begun final : Started {
        Begun(GlooGroup& owner, const Operation& o) : group(owner), operation(o) {
            std::lock_guard lock(group.begun_mutex_);
            group.begun_.push_back(this);
        }
        ~Begun() override {
            // Gloo lets go of the memory before the entry leaves the list. In the other order an
            // operation on this memory could start ahead too early.
            ring.reset();
            agreement.reset();
            std::lock_guard lock(group.begun_mutex_);
            std::erase(group.begun_, this);
        }
        // Whether no other operation in progress uses this memory.
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

    // std::less, because `<` on pointers into different arrays has no defined order.
    static bool overlaps(const Operation& a, const Operation& b) {
        auto touch = [](const Buffer& x, const Buffer& y) {
            const auto *from = static_cast<const char*>(x.data),
                       *to = static_cast<const char*>(y.data);
            return std::less()(from, to + y.bytes()) && std::less()(to, from + x.bytes());
        };
        return touch(a.in, b.in) || touch(a.in, b.out) || touch(a.out, b.in) || touch(a.out, b.out);
    }

    // In a world of one the output is the input: the sum, the average, and the gathered parts of
    // one rank.
    static Result<void> run_alone(const Operation& o) {
        if (o.out.data != o.in.data && o.out.bytes())
            std::memcpy(o.out.data, o.in.data, o.out.bytes());
        return {};
    }

    std::string name(int other) const { return name_rank(other, context().job_ranks); }

    // What Gloo saw here is often only a reaction of another rank. The watchers know which rank was
    // lost first, so the message names that one.
    Error explain(const std::exception& problem) {
        {
            std::lock_guard lock(waiting_mutex_);
            failing_ = true;
            if (mismatch_) return *mismatch_;
        }
        const Error error = error_of_gloo(problem);
        const int other = mesh_->rank_in(problem.what());
        const std::string seen = (other < 0 ? "" : name(other) + ": ") + error.sentence();
        if (error.code() == ErrorCode::timed_out) return Error(error.code(), seen);
        if (other >= 0 && mesh_->has_left(store(), other)) {
            lose(other);
            return Error(ErrorCode::closed, "rank " + std::to_string(other) +
                                                " has left the group: it has ended, or given up "
                                                "after a failure elsewhere");
        }
        const int lost = mesh_->first_lost(store());
        if (lost < 0) return Error(error.code(), seen);
        if (lost == rank()) return Error(ErrorCode::closed, "this rank's group was aborted");
        lose(lost);
        return Error(ErrorCode::closed, "the connection to " + name(lost) +
                                            " was closed: that rank has died or given up");
    }

    // Sends this rank's opinion to the others. `all` receives all opinions when the ring is
    // finished.
    std::unique_ptr<GlooRing> begin_agreement(const Operation& operation,
                                              std::vector<Opinion>& all) {
        const Opinion mine = opinion_of(operation);
        all.resize(static_cast<std::size_t>(size()));
        return mesh_->calls().start_all_gather(&mine, all.data(), sizeof mine,
                                               kAgreements | operation.sequence);
    }

    // Compares this call on all ranks. All of them decide alike whether to compare.
    Result<void> agree(const Operation& operation, Begun* begun) {
        if (!operation.compared) return {};
        std::vector<Opinion> own;
        // begin() may have sent this rank's opinion already.
        const bool ahead = begun && begun->agreement;
        std::vector<Opinion>& all = ahead ? begun->opinions : own;
        (ahead ? std::move(begun->agreement) : begin_agreement(operation, own))->finish();
        return compare_calls(operation, all, context().job_ranks);
    }

    Result<void> pairwise(const Operation& o) {
        return call_pairwise(o, context().job_ranks, [&](int tag, auto out, auto in) {
            mesh_->calls().exchange(static_cast<std::uint64_t>(tag), out ? out->data : nullptr,
                                    out ? out->bytes() : 0, o.root, in ? in->data : nullptr,
                                    in ? in->bytes() : 0, o.source);
            return Result<void>();
        });
    }

    // A hash of the call's shape and number. The odd factors spread the bits. `hash >> 8` leaves 56
    // bits, so that it does not touch the bits below.
    static std::uint64_t channel_of(const Operation& operation) {
        const Opinion o = opinion_of(operation);
        std::uint64_t hash = o.count * 0x9E3779B97F4A7C15u;
        hash ^= (std::uint64_t{o.kind} << 24) + (std::uint64_t{o.type} << 8) + o.op;
        hash = (hash ^ o.sequence * 0xD6E8FEB86659FD93u) * 0xC2B2AE3D27D4EB4Fu;
        return kCollectives | hash >> 8;
    }

    // The channels. The two high bits keep collectives, agreements and calls between two ranks
    // (whose tag is the channel) apart.
    static constexpr std::uint64_t kCollectives = std::uint64_t{1} << 62;
    static constexpr std::uint64_t kAgreements = std::uint64_t{1} << 61;  // + number of the call

    std::unique_ptr<GlooMesh> mesh_;  // null in a world of one
    // These are used by the thread that runs operations and by the mesh's watcher.
    std::mutex waiting_mutex_;
    const Operation* waiting_ = nullptr;
    bool looked_ = false, failing_ = false;
    std::optional<Error> mismatch_;
    std::optional<OtherGroups> others_;
    // begun_ is used by the caller's thread and by the group's thread.
    std::mutex begun_mutex_;
    std::vector<Begun*> begun_;
};

}  // namespace

Result<std::unique_ptr<ProcessGroup>> make_gloo_group(const Context& context,
                                                      std::unique_ptr<Store> store,
                                                      const GroupOptions& options,
                                                      GlooMesh::Clock::time_point deadline) {
    std::unique_ptr<GlooMesh> mesh;
    if (context.world_size > 1) {
        auto made =
            GlooMesh::connect(context, *store, deadline, options.timeout, options.shares_memory);
        if (!made) return made.error();
        mesh = std::move(*made);
    }
    return std::unique_ptr<ProcessGroup>(
        std::make_unique<GlooGroup>(context, std::move(store), options, std::move(mesh)));
}

}  // namespace ddprun::trainer

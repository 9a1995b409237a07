// The group around MPI: the meeting of the ranks, agreement on each call, waiting, and failures.
#include "trainer/mpi/mpi_group.h"

#include <atomic>
#include <optional>
#include <utility>
#include <vector>

#include "trainer/group/compared_calls.h"
#include "trainer/group/left_until.h"
#include "trainer/group/meet.h"
#include "trainer/group/queued_group.h"
#include "trainer/mpi/mpi_calls.h"
#include "trainer/mpi/mpi_communicator.h"
#include "trainer/mpi/mpi_session.h"
#include "trainer/mpi/waiting.h"

namespace ddprun::trainer {
namespace {

using Clock = std::chrono::steady_clock;
using Made = Result<std::unique_ptr<ProcessGroup>>;

constexpr char kHere[] = "mpi/here";  // + rank: this rank has come

class MpiGroup final : public QueuedGroup {
  public:
    MpiGroup(const Context& context, std::unique_ptr<Store> store, const GroupOptions& options)
        : QueuedGroup(context, std::move(store), options) {}
    ~MpiGroup() override {
        stop();
        if (communicator_) leave();
    }

    static Made make(const Context& context, std::unique_ptr<Store> store,
                     const GroupOptions& options) {
        auto group = std::make_unique<MpiGroup>(context, std::move(store), options);
        if (auto done = group->connect(); !done) return done.error();
        return std::unique_ptr<ProcessGroup>(std::move(group));
    }

    const char* backend() const override { return "mpi"; }
    Memory memory() const override { return Memory::host; }

  protected:
    void cut() override {
        if (cut_.exchange(true)) return;
        MpiSession::give_up();
        neighbours_.give_up();
    }

    // MPI must see the calls in one order on all ranks, so each begins in its turn.
    std::shared_ptr<Started> start(const Operation&, bool) override { return nullptr; }

    Result<void> run(const Operation& operation, Started*) override {
        if (auto good = check_size(operation, size()); !good) return good;
        if (!operation.is_collective()) return pairwise(operation);
        if (auto agreed = agree(operation); !agreed) return agreed;
        // A call without elements moves nothing, but it still waits for all ranks.
        return collective(operation, operation.count() ? operation : Operation::barrier(),
                          communicator_->get());
    }

    Made split_backend(const Context& place, std::unique_ptr<Store> own, int color) override {
        if (color < 0) return std::unique_ptr<ProcessGroup>();
        return make(place, std::move(own), options());
    }

  private:
    // One deadline for all. MPI waits for all ranks without one, so they meet before.
    Result<void> connect() {
        const auto deadline = Clock::now() + timeout();
        if (auto all = meet_all(context(), store(), kHere, deadline, timeout()); !all) return all;
        auto neighbours = Neighbours::connect(context(), store(), deadline);
        if (!neighbours) return neighbours.error();
        neighbours_ = std::move(*neighbours);
        auto session = MpiSession::open(context(), timeout());
        if (!session) return session.error();
        session_ = std::move(*session);
        auto made = MpiCommunicator::make(*session_, context());
        if (!made) MpiSession::give_up();
        if (!made) return made.error();
        communicator_ = std::move(*made);
        return {};
    }

    // MPI_Finalize() waits for all ranks without an end. So those of the job meet here first, as in
    // any call; without that, MPI is not finalised.
    void leave() {
        if (over() || cut_) return;
        // In the world: a call of this group may have been left open by a rank that has given up.
        const Operation last = Operation::barrier();
        if (session_->is_ours() && context().job_ranks.empty() &&
            !collective(last, last, MPI_COMM_WORLD))
            MpiSession::give_up();
        neighbours_.leave();
    }

    // Carries out `moved` as what `operation` waits for.
    Result<void> collective(const Operation& operation, const Operation& moved, MPI_Comm among) {
        MpiCall call;
        auto begun =
            session_->call([&] { return begin_collective(moved, among, rank(), size(), call); });
        if (auto done = wait(operation, std::move(begun), call); !done) return done;
        complete(moved, rank(), size(), call);
        return {};
    }

    // Waits for a call that was begun. What MPI says of an end is often only a reaction of another
    // rank.
    Result<void> wait(const Operation& operation, Result<void> begun, MpiCall& call) {
        Waiting waiting({*session_, neighbours_, story(), context(), cut_, timeout()}, operation);
        auto done = begun ? waiting.wait(call.requests) : begun;
        if (waiting.lost() >= 0) lose(waiting.lost());
        return done;
    }

    // Compares this call on all ranks. All ranks decide alike whether to compare.
    Result<void> agree(const Operation& operation) {
        if (!operation.compared) return {};
        Opinion mine = opinion_of(operation);
        std::vector<Opinion> all(static_cast<std::size_t>(size()));
        const auto ask =
            Operation::all_gather({&mine, sizeof mine, DataType::uint8},
                                  {all.data(), all.size() * sizeof mine, DataType::uint8});
        if (auto done = collective(operation, ask, communicator_->get()); !done) return done;
        return compare_calls(operation, all, context().job_ranks);
    }

    Result<void> pairwise(const Operation& o) {
        return call_pairwise(o, context().job_ranks,
                             [&](int tag, auto out, auto in) { return exchange(o, tag, out, in); });
    }

    Result<void> exchange(const Operation& o, int tag, std::optional<Buffer> out,
                          std::optional<Buffer> in) {
        const MPI_Comm group = communicator_->get();
        MpiCall call;
        auto begun = session_->call([&] {
            int code = MPI_SUCCESS;
            if (in)
                code = MPI_Irecv(in->data, static_cast<int>(in->count), mpi_type(in->type),
                                 o.source, tag, group, call.next());
            if (out && code == MPI_SUCCESS)
                code = MPI_Isend(out->data, static_cast<int>(out->count), mpi_type(out->type),
                                 o.root, tag, group, call.next());
            return code;
        });
        return wait(o, std::move(begun), call);
    }

    std::atomic<bool> cut_ = false;
    Neighbours neighbours_;
    std::shared_ptr<MpiSession> session_;
    std::unique_ptr<MpiCommunicator> communicator_;  // goes before the session
};

}  // namespace

Result<std::unique_ptr<ProcessGroup>> make_mpi_group(const Context& context, Store& store,
                                                     const GroupOptions& options) {
    if (options.backend == Backend::nccl)
        return usage_error("a group over MPI has no NCCL; call make_process_group() for it");
    if (auto good = MpiSession::may_begin(); !good) return good.error();
    CallTeller teller;
    const CallTeller::Call told(teller, kMeetingCall, 0);
    auto own = another_of_kind(store, "group", context.rank);
    if (!own) return own.error();
    return MpiGroup::make(context, std::move(*own), options);
}

}  // namespace ddprun::trainer

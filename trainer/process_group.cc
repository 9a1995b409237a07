#include "trainer/process_group.h"

namespace ddprun::trainer {

ProcessGroup::ProcessGroup(const Context& context, Store& store, std::chrono::milliseconds timeout)
    : rank_(context.rank.value), size_(context.world_size), store_(store), timeout_(timeout) {}

std::string ProcessGroup::describe(const Call& call) {
    const char* name = call.kind == Kind::all_reduce  ? "all_reduce"
                       : call.kind == Kind::broadcast ? "broadcast"
                                                      : "barrier";
    std::string text = std::string(name) + " number " + std::to_string(call.sequence);
    if (call.kind == Kind::barrier) return text;
    return text + " of " + std::to_string(call.buffer.count) + " " +
           std::string(to_string(call.buffer.type));
}

Result<void> ProcessGroup::all_reduce(Buffer buffer, ReduceOp op) {
    const bool whole = buffer.type == DataType::int32 || buffer.type == DataType::int64;
    if (buffer.type == DataType::uint8 || buffer.type == DataType::uint64) {
        return Error(ErrorCode::usage, "all_reduce does not take " +
                                           std::string(to_string(buffer.type)) +
                                           "; it takes F32, F64, I32 and I64");
    }
    if (whole && op == ReduceOp::avg) {
        return Error(ErrorCode::usage, "all_reduce has no average of integers; sum and divide");
    }
    return start({Kind::all_reduce, buffer, op, 0, 0});
}

Result<void> ProcessGroup::broadcast(Buffer buffer, int root) {
    if (root < 0 || root >= size_) {
        return Error(ErrorCode::usage, "broadcast from rank " + std::to_string(root) +
                                           ", but the ranks are 0 to " + std::to_string(size_ - 1));
    }
    return start({Kind::broadcast, buffer, ReduceOp::sum, root, 0});
}

Result<void> ProcessGroup::barrier() { return start({Kind::barrier, {}, ReduceOp::sum, 0, 0}); }

Result<void> ProcessGroup::start(Call call) {
    if (failed_) return *failed_;
    if (call.buffer.count && !call.buffer.data) {
        return Error(ErrorCode::usage, "a collective of " + std::to_string(call.buffer.count) +
                                           " elements has no buffer (null)");
    }
    call.sequence = ++sequence_;
    auto done = run(call);
    if (!done) return fail(call, done.error());
    return {};
}

Error ProcessGroup::fail(const Call& call, const Error& reason) {
    std::string sentence = "rank " + std::to_string(rank_) + " of " + std::to_string(size_) + ": " +
                           describe(call) + " failed: " + reason.sentence();
    // The cut comes before the word in the store: it is what wakes the others.
    abort();
    sentence += first_failure(sentence);
    failed_ = Error(reason.code(), sentence);
    return *failed_;
}

namespace {
constexpr char kFailures[] = "group/failures";
constexpr char kFirstFailure[] = "group/first_failure";
}  // namespace

// A ring notices its neighbours only; what the first rank saw is what an operator wants to read on
// every rank.
std::string ProcessGroup::first_failure(const std::string& mine) {
    auto count = store_.add(kFailures, 1);
    if (!count) return "";
    if (*count == 1) {
        (void)store_.set(kFirstFailure, mine);
        return "";
    }
    auto first = store_.get(kFirstFailure, std::chrono::seconds(1));
    return first ? "; the first failure was: " + *first : "";
}

bool ProcessGroup::failed_elsewhere() {
    auto count = store_.add(kFailures, 0);
    return count && *count > 0;
}

}  // namespace ddprun::trainer

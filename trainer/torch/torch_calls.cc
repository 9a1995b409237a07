// Makes c10d's calls, and ends those that it would not end.
#include "trainer/torch/torch_calls.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <vector>

#include "base/system/start_thread.h"
#include "trainer/torch/scalar_types.h"
#include "trainer/worker/local_address.h"

namespace ddprun::trainer {
namespace {

using ::c10d::ProcessGroupGloo;
using Tensors = std::vector<at::Tensor>;
using WorkPointer = decltype(std::declval<ProcessGroupGloo>().barrier());

at::Tensor tensor_of(const Buffer& buffer) {
    return at::from_blob(buffer.data, {static_cast<std::int64_t>(buffer.count)},
                         at::TensorOptions().dtype(scalar_type_of(buffer.type)));
}

// The parts of all ranks in a buffer that has one of each.
Tensors parts_of(const Buffer& buffer, int size) {
    const at::Tensor all = tensor_of(buffer);
    const std::int64_t each = all.numel() / size;
    Tensors parts;
    for (int rank = 0; rank < size; ++rank) parts.push_back(all.narrow(0, rank * each, each));
    return parts;
}

::c10d::ReduceOp reduce_op(ReduceOp op) {
    switch (op) {
        case ReduceOp::min:
            return ::c10d::ReduceOp::MIN;
        case ReduceOp::max:
            return ::c10d::ReduceOp::MAX;
        case ReduceOp::product:
            return ::c10d::ReduceOp::PRODUCT;
        default:
            return ::c10d::ReduceOp::SUM;  // for the average, too
    }
}

}  // namespace

// libtorch's messages begin with a place in its source and go on with a stack or with advice.
// Neither tells our reader anything.
Error error_of_torch(const std::exception& exception) {
    const auto* own = dynamic_cast<const c10::Error*>(&exception);
    std::string text = own ? own->what_without_backtrace() : exception.what();
    if (text.starts_with("[")) {
        const auto end = text.find("] ");
        if (end != std::string::npos) text.erase(0, end + 2);
    }
    text = text.substr(0, text.find(". This may indicate"));
    text = text.substr(0, text.find("\nException raised from"));
    std::replace(text.begin(), text.end(), '\n', ' ');
    // Without the first letter, which is written in upper or lower case.
    if (text.find("imed out") != std::string::npos || text.find("imeout") != std::string::npos)
        return Error(ErrorCode::timed_out, text);
    if (text.find("onnection") != std::string::npos) return Error(ErrorCode::closed, text);
    return Error(ErrorCode::unavailable, text);
}

struct TorchCalls::Gloo {
    int rank = 0, size = 1;
    NewSockets sockets;
    c10::intrusive_ptr<ProcessGroupGloo> group;
    CallOutcome::Group state;
    std::atomic<bool> cut = false;
    std::mutex mutex;                  // of pairs
    std::vector<WorkPointer> pairs{};  // sends and receives in progress, for abort()

    void finish(const WorkPointer& work) {
        auto outcome = std::make_shared<CallOutcome>(1);
        work->getFuture()->addCallback([outcome](c10::ivalue::Future& future) {
            outcome->end(future.hasError() ? future.exception_ptr() : nullptr);
        });
        outcome->wait(state);
    }

    void all_reduce(const Buffer& buffer, ReduceOp op) {
        Tensors tensors{tensor_of(buffer)};
        ::c10d::AllreduceOptions chosen;
        chosen.reduceOp = reduce_op(op);
        finish(group->allreduce(tensors, chosen));
        if (op == ReduceOp::avg) divide(buffer, size);
    }

    void broadcast(const Buffer& buffer, int root) {
        Tensors tensors{tensor_of(buffer)};
        ::c10d::BroadcastOptions chosen;
        chosen.rootRank = root;
        finish(group->broadcast(tensors, chosen));
    }

    // Gloo computes in the buffers of the other ranks, which must not change: they pass a copy.
    void reduce(const Operation& o) {
        const at::Tensor own = tensor_of(o.in);
        Tensors tensors{rank == o.root ? own : own.clone()};
        ::c10d::ReduceOptions chosen;
        chosen.reduceOp = reduce_op(o.op);
        chosen.rootRank = o.root;
        finish(group->reduce(tensors, chosen));
        if (o.op == ReduceOp::avg && rank == o.root) divide(o.in, size);
    }

    // Not all versions of libtorch's Gloo have one of their own.
    void reduce_scatter(const Operation& o) {
        const at::Tensor sum = tensor_of(o.in).clone();
        all_reduce({sum.data_ptr(), o.in.count, o.in.type}, o.op);
        const auto each = static_cast<std::int64_t>(o.out.count);
        tensor_of(o.out).copy_(sum.narrow(0, rank * each, each));
    }

    void all_gather(const Operation& o) {
        std::vector<Tensors> out{parts_of(o.out, size)};
        Tensors in{tensor_of(o.in)};
        finish(group->allgather(out, in));
    }

    void gather(const Operation& o) {
        std::vector<Tensors> out;
        if (rank == o.root) out.push_back(parts_of(o.out, size));
        Tensors in{tensor_of(o.in)};
        ::c10d::GatherOptions chosen;
        chosen.rootRank = o.root;
        finish(group->gather(out, in, chosen));
    }

    void scatter(const Buffer& in, const Buffer& out, int root) {
        std::vector<Tensors> parts;
        if (rank == root) parts.push_back(parts_of(in, size));
        Tensors own{tensor_of(out)};
        ::c10d::ScatterOptions chosen;
        chosen.rootRank = root;
        finish(group->scatter(own, parts, chosen));
    }

    // Each rank scatters its parts in turn. c10d's own call has another name in each version.
    void all_to_all(const Operation& o) {
        const std::size_t each = o.out.count / static_cast<std::size_t>(size);
        auto* to = static_cast<char*>(o.out.data);
        for (int root = 0; root < size; ++root, to += each * size_of(o.out.type))
            scatter(o.in, {to, each, o.out.type}, root);
    }

    // These works have no callback, only a blocking wait, which abort() ends.
    void finish_pairs() {
        auto outcome = std::make_shared<CallOutcome>(pairs.size());
        std::vector<Thread> waiters;
        std::exception_ptr failure;
        try {
            for (const auto& work : pairs) {
                auto waiter = start_thread("a pair of sends", [work, outcome] {
                    try {
                        outcome->end(work->wait() ? nullptr : std::make_exception_ptr(GivenUp()));
                    } catch (...) {
                        outcome->end(std::current_exception());
                    }
                });
                waiters.push_back(std::move(waiter).value());
            }
            outcome->wait(state);
        } catch (...) {
            failure = std::current_exception();
            for (const auto& work : pairs) work->abort();  // the other half, too
        }
        for (auto& waiter : waiters) waiter.join();
        set_pairs({});
        if (failure) std::rethrow_exception(failure);
    }

    // After abort() nobody would end them.
    void set_pairs(std::vector<WorkPointer> works) {
        std::lock_guard lock(mutex);
        pairs = std::move(works);
        if (cut)
            for (const auto& work : pairs) work->abort();
    }
};

TorchCalls::TorchCalls(const Context& context, const std::string& prefix,
                       std::chrono::milliseconds connect, std::chrono::milliseconds call,
                       std::function<void()> ask_other_ranks)
    : gloo_(std::make_unique<Gloo>()) {
    gloo_->rank = context.rank.value;
    gloo_->size = context.world_size;
    gloo_->state = {[gloo = gloo_.get()] { return gloo->cut.load(); }, std::move(ask_other_ranks)};
    ::c10d::TCPStoreOptions where;
    where.port = context.master_port;
    where.waitWorkers = false;
    where.timeout = connect;
    auto keys = c10::make_intrusive<::c10d::PrefixStore>(
        prefix, c10::make_intrusive<::c10d::TCPStore>(context.master_addr, where));
    auto options = ProcessGroupGloo::Options::create(call);
    if (const char* interface = std::getenv("GLOO_SOCKET_IFNAME")) {
        options->devices.push_back(ProcessGroupGloo::createDeviceForInterface(interface));
    } else {
        auto address = local_address(context);
        if (!address) throw std::runtime_error(address.error().sentence());
        options->devices.push_back(ProcessGroupGloo::createDeviceForHostname(*address));
    }
    gloo_->group = c10::make_intrusive<ProcessGroupGloo>(keys, gloo_->rank, gloo_->size, options);
    (void)gloo_->sockets.find(context.master_port);
}

TorchCalls::~TorchCalls() {
    if (aborted()) (void)gloo_.release();
}

void TorchCalls::run(const Operation& o) {
    switch (o.kind) {
        case Collective::all_reduce:
            return gloo_->all_reduce(o.in, o.op);
        case Collective::broadcast:
            return gloo_->broadcast(o.in, o.root);
        case Collective::reduce:
            return gloo_->reduce(o);
        case Collective::all_gather:
            return gloo_->all_gather(o);
        case Collective::reduce_scatter:
            return gloo_->reduce_scatter(o);
        case Collective::gather:
            return gloo_->gather(o);
        case Collective::scatter:
            return gloo_->scatter(o.in, o.out, o.root);
        case Collective::all_to_all:
            return gloo_->all_to_all(o);
        default:
            return gloo_->finish(gloo_->group->barrier());
    }
}

void TorchCalls::exchange(int tag, std::optional<Buffer> out, int to, std::optional<Buffer> in,
                          int from) {
    std::vector<WorkPointer> works;
    if (in) {
        Tensors tensors{tensor_of(*in)};
        works.push_back(gloo_->group->recv(tensors, from, tag));
    }
    if (out) {
        Tensors tensors{tensor_of(*out)};
        works.push_back(gloo_->group->send(tensors, to, tag));
    }
    gloo_->set_pairs(std::move(works));
    gloo_->finish_pairs();
}

void TorchCalls::abort() {
    gloo_->cut = true;
    gloo_->sockets.cut();
    std::lock_guard lock(gloo_->mutex);
    for (const auto& work : gloo_->pairs) work->abort();
}

bool TorchCalls::aborted() const { return gloo_->cut; }

const NewSockets& TorchCalls::sockets() const { return gloo_->sockets; }

}  // namespace ddprun::trainer

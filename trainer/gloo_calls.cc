#include "trainer/gloo_calls.h"

#include <gloo/common/error.h>

#include <algorithm>
#include <cstring>

namespace ddprun::trainer {
namespace {

// Large messages go in pieces, so that one is reduced while the next is on its way.
constexpr std::size_t kPiece = std::size_t{1} << 20;

char* pointer(const Buffer& buffer) { return static_cast<char*>(buffer.data); }

// Half precision overflows early: there the parts are divided before the sum. Elsewhere dividing
// afterwards rounds only once.
bool divides_first(const Operation& o) {
    return o.op == ReduceOp::avg && o.type() == DataType::float16;
}

}  // namespace

GlooCalls::GlooCalls(std::shared_ptr<::gloo::Context> mesh)
    : mesh_(std::move(mesh)), rank_(mesh_->rank), size_(mesh_->size) {}

void GlooCalls::abort() {
    std::lock_guard lock(mutex_);
    aborted_ = true;
    for (auto* buffer : waiting_) {
        buffer->abortWaitSend();
        buffer->abortWaitRecv();
    }
}

// A buffer that abort() can reach. An abort before the wait begins is not lost: it stays with the
// buffer, and what comes later is refused.
class GlooCalls::Waiting {
  public:
    Waiting(GlooCalls& calls, ::gloo::transport::UnboundBuffer* buffer)
        : calls_(calls), buffer_(buffer) {
        std::lock_guard lock(calls_.mutex_);
        if (calls_.aborted_) throw ::gloo::IoException("Connection given up: the group is over");
        calls_.waiting_.insert(buffer_);
    }
    ~Waiting() {
        std::lock_guard lock(calls_.mutex_);
        calls_.waiting_.erase(buffer_);
    }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

    void check(bool completed) const {
        if (!completed) throw ::gloo::IoException("Connection given up: the wait was aborted");
    }

  private:
    GlooCalls& calls_;
    ::gloo::transport::UnboundBuffer* buffer_;
};

GlooCalls::Pending GlooCalls::send(Channel channel, const void* data, std::size_t bytes, int to) {
    auto pending = mesh_->createUnboundBuffer(const_cast<void*>(data), bytes);
    pending->send(to, channel);
    return pending;
}

GlooCalls::Pending GlooCalls::receive(Channel channel, void* data, std::size_t bytes, int from) {
    auto pending = mesh_->createUnboundBuffer(data, bytes);
    pending->recv(from, channel);
    return pending;
}

void GlooCalls::wait_sent(Pending& pending) {
    const Waiting waiting(*this, pending.get());
    waiting.check(pending->waitSend(mesh_->getTimeout()));
}

void GlooCalls::wait_received(Pending& pending) {
    const Waiting waiting(*this, pending.get());
    waiting.check(pending->waitRecv(mesh_->getTimeout()));
}

void GlooCalls::exchange(Channel channel, const void* out, std::size_t out_bytes, int to, void* in,
                         std::size_t in_bytes, int from) {
    Pending received, sent;
    if (in && in_bytes) received = receive(channel, in, in_bytes, from);
    if (out && out_bytes) sent = send(channel, out, out_bytes, to);
    if (received) wait_received(received);
    if (sent) wait_sent(sent);
}

// A buffer as one part for each rank, as equal as can be.
GlooCalls::Part GlooCalls::part_of(const Buffer& buffer, int index) const {
    const std::size_t width = size_of(buffer.type), parts = static_cast<std::size_t>(size_);
    auto begin = [&](std::size_t i) {
        return (buffer.count / parts * i + std::min(i, buffer.count % parts)) * width;
    };
    const auto at = static_cast<std::size_t>(index);
    return {pointer(buffer) + begin(at), begin(at + 1) - begin(at)};
}

// One step of the ring: a part goes to the right while one comes from the left and is added to
// ours.
void GlooCalls::reduce_part(const Operation& o, Part own, Part out_going, Channel channel) {
    const std::size_t piece = kPiece / size_of(o.type()) * size_of(o.type());
    scratch_.resize(std::max(scratch_.size(), own.bytes));
    std::vector<Pending> sent, received;
    for (std::size_t at = 0; at < own.bytes; at += piece)
        received.push_back(
            receive(channel, &scratch_[at], std::min(piece, own.bytes - at), left()));
    for (std::size_t at = 0; at < out_going.bytes; at += piece)
        sent.push_back(
            send(channel, out_going.data + at, std::min(piece, out_going.bytes - at), right()));
    const ReduceFunction add = reduce_function(o.type(), o.op);
    for (std::size_t i = 0; i < received.size(); ++i) {
        wait_received(received[i]);
        const std::size_t at = i * piece, bytes = std::min(piece, own.bytes - at);
        // What came holds the ranks before us: first operand, so that the order is the ring's.
        add(own.data + at, &scratch_[at], own.data + at, bytes / size_of(o.type()));
    }
    for (auto& pending : sent) wait_sent(pending);
}

// Afterwards part `last` of this rank's buffer is the reduction of all. `last` is the rank plus the
// same number on all ranks.
void GlooCalls::ring_reduce_scatter(const Operation& o, const Buffer& buffer, int last,
                                    Channel channel) {
    for (int step = 0; step + 1 < size_; ++step) {
        reduce_part(o, part_of(buffer, around(last - 2 - step)),
                    part_of(buffer, around(last - 1 - step)), channel);
    }
}

// Each rank has part `first` (the rank plus the same number on all), afterwards all parts.
void GlooCalls::ring_all_gather(const Buffer& buffer, int first, Channel channel) {
    for (int step = 0; step + 1 < size_; ++step) {
        const Part mine = part_of(buffer, around(first - step));
        const Part theirs = part_of(buffer, around(first - step - 1));
        exchange(channel, mine.data, mine.bytes, right(), theirs.data, theirs.bytes, left());
    }
}

void GlooCalls::all_reduce(const Operation& o, Buffer buffer, Channel channel) {
    if (divides_first(o)) divide(buffer, size_);
    ring_reduce_scatter(o, buffer, rank_ + 1, channel);
    ring_all_gather(buffer, rank_ + 1, channel);
    if (o.op == ReduceOp::avg && !divides_first(o)) divide(buffer, size_);
}

// The input stays as it was, so the sums are made in a copy.
void GlooCalls::reduce_scatter(const Operation& o, Channel channel) {
    Bytes copy(pointer(o.in), pointer(o.in) + o.in.bytes());
    const Buffer work{copy.data(), o.in.count, o.in.type};
    if (divides_first(o)) divide(work, size_);
    ring_reduce_scatter(o, work, rank_, channel);
    std::memcpy(o.out.data, part_of(work, rank_).data, o.out.bytes());
    if (o.op == ReduceOp::avg && !divides_first(o)) divide(o.out, size_);
}

// Up a binomial tree. Only the root's buffer changes.
void GlooCalls::reduce(const Operation& o, Channel channel) {
    Bytes copy(pointer(o.in), pointer(o.in) + o.in.bytes()), other(o.in.bytes());
    const Buffer work{copy.data(), o.in.count, o.in.type};
    if (divides_first(o)) divide(work, size_);
    const ReduceFunction add = reduce_function(o.in.type, o.op);
    const int place = around(rank_ - o.root);
    for (int mask = 1; mask < size_; mask <<= 1) {
        if (place & mask) {
            const int below = around(place - mask + o.root);
            return exchange(channel, copy.data(), copy.size(), below, nullptr, 0, 0);
        }
        if (place + mask >= size_) continue;
        const int above = around(place + mask + o.root);
        exchange(channel, nullptr, 0, 0, other.data(), other.size(), above);
        add(copy.data(), copy.data(), other.data(), o.in.count);
    }
    std::memcpy(o.out.data, copy.data(), copy.size());
    if (o.op == ReduceOp::avg && !divides_first(o)) divide(o.out, size_);
}

// Down the same tree, the farthest branch first.
void GlooCalls::broadcast(const Operation& o, Channel channel) {
    const int place = around(rank_ - o.root);
    int mask = 1;
    while (mask < size_ && !(place & mask)) mask <<= 1;
    if (place) {
        const int above = around(place - mask + o.root);
        exchange(channel, nullptr, 0, 0, o.out.data, o.out.bytes(), above);
    }
    for (mask >>= 1; mask; mask >>= 1) {
        if (place + mask >= size_) continue;
        const int below = around(place + mask + o.root);
        exchange(channel, o.out.data, o.out.bytes(), below, nullptr, 0, 0);
    }
}

void GlooCalls::gather(const Operation& o, Channel channel) {
    if (rank_ != o.root) return exchange(channel, o.in.data, o.in.bytes(), o.root, nullptr, 0, 0);
    std::vector<Pending> received;
    for (int other = 0; other < size_; ++other) {
        char* to = pointer(o.out) + static_cast<std::size_t>(other) * o.in.bytes();
        if (other == rank_) {
            std::memmove(to, o.in.data, o.in.bytes());
        } else {
            received.push_back(receive(channel, to, o.in.bytes(), other));
        }
    }
    for (auto& pending : received) wait_received(pending);
}

void GlooCalls::scatter(const Operation& o, Channel channel) {
    if (rank_ != o.root) return exchange(channel, nullptr, 0, 0, o.out.data, o.out.bytes(), o.root);
    std::vector<Pending> sent;
    for (int other = 0; other < size_; ++other) {
        const char* from = pointer(o.in) + static_cast<std::size_t>(other) * o.out.bytes();
        if (other == rank_) {
            std::memmove(o.out.data, from, o.out.bytes());
        } else {
            sent.push_back(send(channel, from, o.out.bytes(), other));
        }
    }
    for (auto& pending : sent) wait_sent(pending);
}

void GlooCalls::all_to_all(const Operation& o, Channel channel) {
    const Part own = part_of(o.in, rank_);
    std::memcpy(part_of(o.out, rank_).data, own.data, own.bytes);
    for (int step = 1; step < size_; ++step) {
        const int to = around(rank_ + step), from = around(rank_ - step);
        const Part mine = part_of(o.in, to), theirs = part_of(o.out, from);
        exchange(channel, mine.data, mine.bytes, to, theirs.data, theirs.bytes, from);
    }
}

// Each rank hears, in a logarithm of steps, from all others.
void GlooCalls::barrier(Channel channel) {
    for (int step = 1; step < size_; step <<= 1) {
        char mine = 1, theirs = 0;
        exchange(channel, &mine, 1, around(rank_ + step), &theirs, 1, around(rank_ - step));
    }
}

void GlooCalls::all_gather(const void* in, void* out, std::size_t bytes, Channel channel) {
    const Buffer all{out, bytes * static_cast<std::size_t>(size_), DataType::uint8};
    std::memmove(part_of(all, rank_).data, in, bytes);
    ring_all_gather(all, rank_, channel);
}

void GlooCalls::run(const Operation& o, Channel channel) {
    switch (o.kind) {
        case Collective::all_reduce:
            return all_reduce(o, o.out, channel);
        case Collective::broadcast:
            return broadcast(o, channel);
        case Collective::reduce:
            return reduce(o, channel);
        case Collective::all_gather:
            return all_gather(o.in.data, o.out.data, o.in.bytes(), channel);
        case Collective::reduce_scatter:
            return reduce_scatter(o, channel);
        case Collective::gather:
            return gather(o, channel);
        case Collective::scatter:
            return scatter(o, channel);
        case Collective::all_to_all:
            return all_to_all(o, channel);
        default:
            return barrier(channel);
    }
}

}  // namespace ddprun::trainer

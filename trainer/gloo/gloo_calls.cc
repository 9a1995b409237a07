// The algorithms of the collectives: rings, binomial trees, and messages to and from one root.
#include "trainer/gloo/gloo_calls.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/system/random_bytes.h"
#include "trainer/gloo/gloo_memory_ring.h"
#include "trainer/gloo/gloo_message_ring.h"

namespace ddprun::trainer {
namespace {

char* pointer(const Buffer& buffer) { return static_cast<char*>(buffer.data); }

// Bytes of a rank's part of a buffer. What is smaller was as fast in messages, on two cores.
constexpr std::size_t kLeastInMemory = std::size_t{768} << 10;

// Whether an average divides before it adds. float16 ends at 65504, so a sum over many ranks could
// overflow although the average fits. All other types divide after the sum, which rounds only once.
bool divides_first(const Operation& o) {
    return o.op == ReduceOp::avg && o.type() == DataType::float16;
}

}  // namespace

GlooCalls::GlooCalls(std::shared_ptr<::gloo::Context> mesh)
    : messages_(std::move(mesh)), rank_(messages_.rank()), size_(messages_.size()) {}

// A neighbour's number of a process may mean another process here, or none: a container or another
// host has its own. A mark with a random value tells.
void GlooCalls::share_memory(bool allowed, Channel channel) {
    marks_ = random_number();
    struct Word {
        std::int64_t process;
        MemoryMark::Place mark;
    };
    const MemoryMark mark(++marks_);
    const Word mine{getpid(), mark.place()};
    Word left{};
    exchange(channel, &mine, sizeof mine, around(rank_ + 1), &left, sizeof left, around(rank_ - 1));
    const PeerMemory memory(static_cast<pid_t>(left.process));
    std::uint64_t seen = 0;
    const char good = allowed && memory.read(left.mark.address, &seen, sizeof seen, left.mark) == 0;
    // The answers of all come after all have tried, so the mark stays long enough.
    Bytes all(static_cast<std::size_t>(size_));
    all_gather(&good, all.data(), 1, channel);
    if (std::find(all.begin(), all.end(), 0) == all.end()) left_ = memory;
}

// Cuts a buffer into one part for each rank. The first parts get one element more if the count does
// not divide.
GlooCalls::Part GlooCalls::part_of(const Buffer& buffer, int index) const {
    const std::size_t width = size_of(buffer.type), parts = static_cast<std::size_t>(size_);
    auto begin = [&](std::size_t i) {
        return (buffer.count / parts * i + std::min(i, buffer.count % parts)) * width;
    };
    const auto at = static_cast<std::size_t>(index);
    return {pointer(buffer) + begin(at), begin(at + 1) - begin(at)};
}

// The hops of a ring reduction. After them part `last` of this rank's buffer is the reduction over
// all ranks. last - rank must be the same number on all ranks. The ring begins with sending part
// last - 1.
GlooCalls::Hops GlooCalls::reduce_hops(const Buffer& buffer, int last) const {
    Hops hops;
    for (int step = 0; step + 1 < size_; ++step)
        hops.push_back({part_of(buffer, around(last - 2 - step)),
                        step + 2 < size_ ? GlooRing::Does::add : GlooRing::Does::add_last});
    return hops;
}

// The hops of a ring all-gather. Before them this rank has part `first`, after them all parts.
// first - rank must be the same number on all ranks.
GlooCalls::Hops GlooCalls::gather_hops(const Buffer& buffer, int first) const {
    Hops hops;
    for (int step = 0; step + 1 < size_; ++step)
        hops.push_back({part_of(buffer, around(first - 1 - step)), GlooRing::Does::keep});
    return hops;
}

// A reduce-scatter of a buffer, in place. For an all-reduce an all-gather follows. In each half a
// rank sends and receives (N - 1) / N of the buffer, whatever the number N of ranks. Both add in
// the same order, so that an all-reduce gives the bits of a reduce-scatter of the same buffer.
std::unique_ptr<GlooRing> GlooCalls::ring_of(const Operation& o, Channel channel) {
    Hops hops = reduce_hops(o.in, rank_);
    if (o.kind == Collective::all_reduce)
        for (const auto& hop : gather_hops(o.in, rank_)) hops.push_back(hop);
    const bool divides = o.op == ReduceOp::avg && !divides_first(o);
    return ring(channel, o.in, around(rank_ - 1), hops,
                {reduce_function(o.type(), o.op), o.type(), divides ? size_ : 1});
}

// A ring that begins with sending part `first`. All ranks choose alike: from the size of all.
std::unique_ptr<GlooRing> GlooCalls::ring(Channel channel, const Buffer& buffer, int first,
                                          const Hops& hops, const GlooRing::Reduction& reduction) {
    if (left_ && buffer.bytes() / static_cast<std::size_t>(size_) >= kLeastInMemory)
        return std::make_unique<GlooMemoryRing>(messages_, channel, *left_, ++marks_,
                                                Part{pointer(buffer), buffer.bytes()}, hops,
                                                reduction);
    return std::make_unique<GlooMessageRing>(messages_, channel, part_of(buffer, first), hops,
                                             reduction);
}

// Whether this rank's part of the larger buffer is the smaller one.
bool GlooCalls::is_in_place(const Operation& o) const {
    if (o.kind == Collective::all_gather) return part_of(o.out, rank_).data == pointer(o.in);
    return o.kind == Collective::reduce_scatter && part_of(o.in, rank_).data == pointer(o.out);
}

// If the values must be divided first, the group's thread does that, in its turn: the division
// takes time that the caller of begin() does not have.
std::unique_ptr<GlooRing> GlooCalls::start(const Operation& o, Channel channel) {
    if (divides_first(o)) return nullptr;
    if (o.kind == Collective::all_gather && is_in_place(o))
        return start_all_gather(o.in.data, o.out.data, o.in.bytes(), channel);
    if (o.kind == Collective::all_reduce ||
        (o.kind == Collective::reduce_scatter && is_in_place(o)))
        return ring_of(o, channel);
    return nullptr;
}

void GlooCalls::all_reduce(const Operation& o, Channel channel) {
    if (divides_first(o)) divide(o.out, size_);
    ring_of(o, channel)->finish();
}

// The ring adds in place. If the caller's input must not change, it works on a copy.
void GlooCalls::reduce_scatter(const Operation& o, Channel channel) {
    Operation work = o;
    Bytes copy;
    if (!is_in_place(o)) {
        copy.assign(pointer(o.in), pointer(o.in) + o.in.bytes());
        work.in.data = copy.data();
    }
    if (divides_first(o)) divide(work.in, size_);
    ring_of(work, channel)->finish();
    if (!copy.empty()) std::memcpy(o.out.data, part_of(work.in, rank_).data, o.out.bytes());
}

// Up a binomial tree, whose root is place 0. In the round with bit `mask` each place that has the
// bit sends its sum to the place without it, and is done. Only the root's buffer changes.
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

// Down the same tree. The largest branch comes first, because it has the most levels below it.
void GlooCalls::broadcast(const Operation& o, Channel channel) {
    const int place = around(rank_ - o.root);
    int mask = 1;
    // The lowest bit of the place says in which round of reduce() this rank would send: now it
    // receives from there. The root stops above the highest bit.
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

// The root posts all receives before it waits, so that the others send at the same time.
void GlooCalls::gather(const Operation& o, Channel channel) {
    if (rank_ != o.root) return exchange(channel, o.in.data, o.in.bytes(), o.root, nullptr, 0, 0);
    std::vector<GlooMessages::Pending> received;
    for (int other = 0; other < size_; ++other) {
        char* to = pointer(o.out) + static_cast<std::size_t>(other) * o.in.bytes();
        if (other == rank_) {
            // memmove, because `in` may already lie at its place in `out`.
            std::memmove(to, o.in.data, o.in.bytes());
        } else {
            received.push_back(messages_.receive(channel, to, o.in.bytes(), other));
        }
    }
    for (auto& pending : received) messages_.wait_received(pending);
}

void GlooCalls::scatter(const Operation& o, Channel channel) {
    if (rank_ != o.root) return exchange(channel, nullptr, 0, 0, o.out.data, o.out.bytes(), o.root);
    std::vector<GlooMessages::Pending> sent;
    for (int other = 0; other < size_; ++other) {
        const char* from = pointer(o.in) + static_cast<std::size_t>(other) * o.out.bytes();
        if (other == rank_) {
            std::memmove(o.out.data, from, o.out.bytes());
        } else {
            sent.push_back(messages_.send(channel, from, o.out.bytes(), other));
        }
    }
    for (auto& pending : sent) messages_.wait_sent(pending);
}

// In each step every rank sends to one rank and receives from one, so no rank is a bottleneck.
void GlooCalls::all_to_all(const Operation& o, Channel channel) {
    const Part own = part_of(o.in, rank_);
    std::memcpy(part_of(o.out, rank_).data, own.data, own.bytes);
    for (int step = 1; step < size_; ++step) {
        const int to = around(rank_ + step), from = around(rank_ - step);
        const Part mine = part_of(o.in, to), theirs = part_of(o.out, from);
        exchange(channel, mine.data, mine.bytes, to, theirs.data, theirs.bytes, from);
    }
}

// A dissemination barrier (Hensgen, Finkel and Manber, 1988). After k steps a rank has heard,
// directly or through others, from the 2^k - 1 ranks to its left. So log2(N) steps are enough.
void GlooCalls::barrier(Channel channel) {
    for (int step = 1; step < size_; step <<= 1) {
        char mine = 1, theirs = 0;
        exchange(channel, &mine, 1, around(rank_ + step), &theirs, 1, around(rank_ - step));
    }
}

std::unique_ptr<GlooRing> GlooCalls::start_all_gather(const void* in, void* out, std::size_t bytes,
                                                      Channel channel) {
    // As bytes: nothing is added, so the type of the elements does not matter.
    const Buffer all{out, bytes * static_cast<std::size_t>(size_), DataType::uint8};
    const Part own = part_of(all, rank_);
    std::memmove(own.data, in, bytes);
    return ring(channel, all, rank_, gather_hops(all, rank_), {});
}

void GlooCalls::run(const Operation& o, Channel channel) {
    switch (o.kind) {
        case Collective::all_reduce:
            return all_reduce(o, channel);
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

// One call on a process group as a value: what moves, how it is reduced, from or to whom; which
// calls are wrong before anything moves, and how a call is named in a message.
//
// Pure. The backends execute operations, process_group.h makes them. In a world of N ranks:
//
//   all_reduce      in place: the reduction of all
//   broadcast       in place: the root's
//   reduce          in place on the root; the other ranks' buffers stay as they were
//   all_gather      out (N × in): all ranks' in, by rank
//   reduce_scatter  in (N × out): out is the rank-th part of the reduction
//   gather          out (N × in) on the root; the other ranks need none
//   scatter         in (N × out) on the root; the other ranks need none
//   all_to_all      in, out (equal, N parts): part r of in goes to rank r
//   send, receive   between two ranks; both say the same count and type
//   exchange        sends in to `peer` while out comes from `source`: never a deadlock of two sends
//   barrier         returns once all have come
//   monitored_barrier  the same through the store, slower; its error lists who is absent
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "trainer/group/data_type.h"

namespace ddprun::trainer {

enum class ReduceOp : std::uint32_t {
    sum,
    avg,  // the sum divided by the number of ranks; not for integers
    min,
    max,
    product,
};

enum class Collective : std::uint32_t {
    all_reduce,
    broadcast,
    reduce,
    all_gather,
    reduce_scatter,
    gather,
    scatter,
    all_to_all,
    send,
    receive,
    exchange,
    barrier,
    monitored_barrier,
};

// What a call works on. The memory is the caller's and must be of the group's kind.
struct Buffer {
    void* data = nullptr;
    std::size_t count = 0;
    DataType type = DataType::float32;

    std::size_t bytes() const { return count * size_of(type); }
};

template <class T>
Buffer buffer_of(std::span<T> values) {
    return {values.data(), values.size(), data_type<T>()};
}

struct Operation {
    Collective kind = Collective::barrier;
    Buffer in, out;  // the same for what works in place
    ReduceOp op = ReduceOp::sum;
    int root = 0;                // send, exchange: to whom
    int source = 0;              // receive, exchange: from whom
    std::uint64_t sequence = 0;  // set by the group; 1 for its first call

    static Operation all_reduce(Buffer buffer, ReduceOp op = ReduceOp::sum);
    static Operation broadcast(Buffer buffer, int root = 0);
    static Operation reduce(Buffer buffer, ReduceOp op = ReduceOp::sum, int root = 0);
    static Operation all_gather(Buffer in, Buffer out);
    static Operation reduce_scatter(Buffer in, Buffer out, ReduceOp op = ReduceOp::sum);
    static Operation gather(Buffer in, Buffer out, int root = 0);
    static Operation scatter(Buffer in, Buffer out, int root = 0);
    static Operation all_to_all(Buffer in, Buffer out);
    static Operation send(Buffer buffer, int to);
    static Operation receive(Buffer buffer, int from);
    static Operation exchange(Buffer out_going, int to, Buffer in_coming, int from);
    static Operation barrier();
    static Operation monitored_barrier();

    // Whether all ranks of the group make this call (not only two of them).
    bool is_collective() const {
        return kind != Collective::send && kind != Collective::receive &&
               kind != Collective::exchange;
    }

    // What one rank brings or takes: the number on which all must agree.
    std::size_t count() const;
    DataType type() const;
};

// Errors: usage, with the call and the numbers.
Result<void> check(const Operation& operation, int rank, int size);

// "all_reduce number 2 of 100000 F32 (391 KiB)"
std::string describe(const Operation& operation);

// One rank's opinion of a call as it travels to the others, and what is said when two differ.
struct Opinion {
    std::uint64_t sequence, count;
    std::uint32_t kind, type, op, root;
    bool operator==(const Opinion&) const = default;
};
Opinion opinion_of(const Operation& operation);

// "rank 3 calls all_reduce number 2 of 10 F32 (operator sum), this rank … of 12 F32 (operator sum)"
std::string disagreement(const Opinion& mine, const Opinion& theirs, int other);

// out[i] = a[i] op b[i]; `avg` adds. For every type but uint64 (which moves, but is not reduced).
using ReduceFunction = void (*)(void* out, const void* a, const void* b, std::size_t count);
ReduceFunction reduce_function(DataType type, ReduceOp op);

// Divides a floating type's values. (A product with 1 / by would round twice.)
void divide(Buffer buffer, double by);

// "rank 3", "ranks 1, 4 and 7", "ranks 1, 4, 7 and 12 more (16 in all)"
std::string name_ranks(const std::vector<int>& ranks);

}  // namespace ddprun::trainer

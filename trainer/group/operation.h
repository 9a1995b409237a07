// One call on a process group as a value: which collective, which buffers, which reduction, which
// peer. This file also checks arguments, names calls in messages, and reduces values in host
// memory.
//
// Pure. process_group.h creates operations, the backends carry them out. In a group of N ranks,
// with the operation's buffers `in` and `out`:
//
//   all_reduce      in place: every rank gets the reduction over all ranks
//   broadcast       in place: every rank gets the root's values
//   reduce          in place on the root; the buffers of other ranks do not change
//   all_gather      out (N × in) gets the `in` of every rank, in the order of the ranks. `in` may
//                   be part r of `out` (in place)
//   reduce_scatter  in (N × out): rank r gets part r of the reduction. If `out` is part r of `in`,
//                   it works in place, without a copy, and the other parts of `in` are then garbage
//   gather          like all_gather, but only the root needs `out` and fills it
//   scatter         only the root needs `in` (N × out): rank r gets part r of it
//   all_to_all      in and out have N equal parts: part r of `in` goes to rank r
//   send, receive   between two ranks, which must give the same count and type
//   exchange        sends `in` to rank `root` while it receives `out` from rank `source`.
//                   Two ranks that both send first would block each other; this cannot happen here.
//   barrier         returns after every rank has called it
//   monitored_barrier  a barrier through the store: slower, but its error lists the absent ranks
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "trainer/gpu/gpu.h"
#include "trainer/group/data_type.h"

namespace ddprun::trainer {

// How values of several ranks become one. The numbers are part of the messages between ranks.
enum class ReduceOp : std::uint32_t {
    sum,
    avg,  // the sum divided by the number of ranks; not for integers
    min,
    max,
    product,
};

// Which call it is. The numbers are part of the messages between ranks.
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

// Memory that a call reads or writes. The caller owns it. It must be of the group's kind (host or
// GPU), and it must stay until the call is done.
struct Buffer {
    void* data = nullptr;
    std::size_t count = 0;  // elements
    DataType type = DataType::float32;

    std::size_t bytes() const { return count * size_of(type); }
};

template <class T>
Buffer buffer_of(std::span<T> values) {
    return {values.data(), values.size(), data_type<T>()};
}

// One call with all its arguments. A program makes it with one of the static functions.
struct Operation {
    Collective kind = Collective::barrier;
    Buffer in, out;  // equal for an operation that works in place
    ReduceOp op = ReduceOp::sum;
    int root = 0;    // the root; for send and exchange: the destination
    int source = 0;  // for receive and exchange: the rank that sends
    // On a GPU: the call comes after what this stream has been given so far, see on().
    GpuStream stream = nullptr;
    const char* caller = "";     // see of()
    std::uint64_t sequence = 0;  // the group sets it; 1 for its first call
    bool compared = false;       // the group sets it: the ranks compare this call before data move

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

    // The same call after the work that `stream` has been given when the call is begun. Null: the
    // legacy default stream. Groups on host memory take no notice of it.
    Operation on(GpuStream after) const;

    // The same call, made by a part of the program with a name ("gradients"). Messages have it, and
    // the ranks compare it. A literal, the same on all ranks; 15 characters count.
    Operation of(const char* part) const;

    // Whether all ranks of the group make this call. False for calls between two ranks.
    bool is_collective() const {
        return kind != Collective::send && kind != Collective::receive &&
               kind != Collective::exchange;
    }

    // Number and type of the elements that one rank contributes or receives. All ranks must agree.
    std::size_t count() const;
    DataType type() const;
};

// Checks the arguments before any data moves. `rank` is this rank, `size` the number of ranks.
// Errors: usage; the sentence names the call and the numbers.
Result<void> check(const Operation& operation, int rank, int size);

// The call in a message: "all_reduce number 2 of 100000 F32 (391 KiB) for gradients".
std::string describe(const Operation& operation);

// What one rank believes about a call. The ranks send each other its bytes and compare them. It has
// no padding.
struct Opinion {
    std::uint64_t sequence, count;
    std::uint32_t kind, type, op, root;
    char caller[16];  // ends with a zero
    bool operator==(const Opinion&) const = default;
};
Opinion opinion_of(const Operation& operation);

// The bytes that ranks exchange, and an opinion from what another rank sent. A text of another
// length gives zeros: no call has the number 0, so the comparison fails.
std::string bytes_of(const Opinion& opinion);
Opinion opinion_in(const std::string& bytes);

// The message for two ranks that make different calls: "rank 3 calls all_reduce number 2 of 10 F32
// …; this rank calls … of 12 F32 …". If only one of them is made for a part of the library, such as
// gradients, it also says what helps where ranks have unequal numbers of steps. `other`: the other
// rank's name, see rank_names.h.
std::string disagreement(const Opinion& mine, const Opinion& theirs, const std::string& other);

// out[i] = a[i] op b[i] in host memory. `out` may be `a` or `b`. For `avg` it only adds: the caller
// divides. Not for uint64, which check() refuses to reduce.
using ReduceFunction = void (*)(void* out, const void* a, const void* b, std::size_t count);
ReduceFunction reduce_function(DataType type, ReduceOp op);

// Divides every value by `by`. For floating types only. It does not multiply by 1 / by, because
// that rounds twice.
void divide(Buffer buffer, double by);

}  // namespace ddprun::trainer

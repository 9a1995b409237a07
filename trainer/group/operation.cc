// Makes, checks and describes operations, and reduces values in host memory.
#include "trainer/group/operation.h"

#include <algorithm>
#include <cstring>

namespace ddprun::trainer {
namespace {

// In the order of the enums Collective and ReduceOp.
constexpr const char* kNames[] = {
    "all_reduce", "broadcast", "reduce",           "all_gather", "reduce_scatter",
    "gather",     "scatter",   "all_to_all",       "send",       "receive",
    "exchange",   "barrier",   "monitored_barrier"};
constexpr const char* kOperators[] = {"sum", "avg", "min", "max", "product"};

// The number may come from another rank, so it can lie outside the table.
template <std::size_t N>
std::string name_in(const char* const (&names)[N], std::uint32_t index) {
    return index < N ? names[index] : "unknown (" + std::to_string(index) + ")";
}

// Whether the call combines values with an operator.
bool reduces(Collective kind) {
    return kind == Collective::all_reduce || kind == Collective::reduce ||
           kind == Collective::reduce_scatter;
}
// Whether all ranks must give the same root.
bool has_root(Collective kind) {
    return kind == Collective::broadcast || kind == Collective::reduce ||
           kind == Collective::gather || kind == Collective::scatter;
}

// Two digits or more remain of a rounded size; it is rounded down.
std::string size_text(std::size_t bytes) {
    if (bytes < 10 * 1024) return std::to_string(bytes) + " bytes";
    if (bytes < 10 * 1024 * 1024) return std::to_string(bytes / 1024) + " KiB";
    return std::to_string(bytes / 1024 / 1024) + " MiB";
}

// The group sets the number of the call, 0 here.
Operation make(Collective kind, Buffer in, Buffer out, ReduceOp op = ReduceOp::sum, int root = 0,
               int source = 0) {
    Operation made;
    made.kind = kind;
    made.in = in;
    made.out = out;
    made.op = op;
    made.root = root;
    made.source = source;
    return made;
}

}  // namespace

Operation Operation::all_reduce(Buffer buffer, ReduceOp op) {
    return make(Collective::all_reduce, buffer, buffer, op);
}
Operation Operation::broadcast(Buffer buffer, int root) {
    return make(Collective::broadcast, buffer, buffer, ReduceOp::sum, root);
}
Operation Operation::reduce(Buffer buffer, ReduceOp op, int root) {
    return make(Collective::reduce, buffer, buffer, op, root);
}
Operation Operation::all_gather(Buffer in, Buffer out) {
    return make(Collective::all_gather, in, out);
}
Operation Operation::reduce_scatter(Buffer in, Buffer out, ReduceOp op) {
    return make(Collective::reduce_scatter, in, out, op);
}
Operation Operation::gather(Buffer in, Buffer out, int root) {
    return make(Collective::gather, in, out, ReduceOp::sum, root);
}
Operation Operation::scatter(Buffer in, Buffer out, int root) {
    return make(Collective::scatter, in, out, ReduceOp::sum, root);
}
Operation Operation::all_to_all(Buffer in, Buffer out) {
    return make(Collective::all_to_all, in, out);
}
// send and receive have one peer. Both fields name it, so that check() needs no special case.
Operation Operation::send(Buffer buffer, int to) {
    return make(Collective::send, buffer, buffer, ReduceOp::sum, to, to);
}
Operation Operation::receive(Buffer buffer, int from) {
    return make(Collective::receive, buffer, buffer, ReduceOp::sum, from, from);
}
Operation Operation::exchange(Buffer out_going, int to, Buffer in_coming, int from) {
    return make(Collective::exchange, out_going, in_coming, ReduceOp::sum, to, from);
}
Operation Operation::barrier() { return {}; }
Operation Operation::monitored_barrier() { return make(Collective::monitored_barrier, {}, {}); }

Operation Operation::on(GpuStream after) const {
    Operation same = *this;
    same.stream = after;
    return same;
}
Operation Operation::of(const char* part) const {
    Operation same = *this;
    same.caller = part;
    return same;
}

std::size_t Operation::count() const {
    // Here `in` is the large buffer, so `out` holds what one rank gets.
    return kind == Collective::scatter || kind == Collective::reduce_scatter ? out.count : in.count;
}
DataType Operation::type() const {
    return kind == Collective::scatter || kind == Collective::reduce_scatter ? out.type : in.type;
}

std::string describe(const Operation& operation) {
    std::string text = name_in(kNames, static_cast<std::uint32_t>(operation.kind)) + " number " +
                       std::to_string(operation.sequence);
    if (operation.kind != Collective::barrier && operation.kind != Collective::monitored_barrier)
        text += " of " + std::to_string(operation.count()) + " " +
                std::string(to_string(operation.type())) + " (" +
                size_text(operation.count() * size_of(operation.type())) + ")";
    return *operation.caller ? text + " for " + operation.caller : text;
}

namespace {

// Some operations have one part for each rank in one buffer. Its size follows from the other
// buffer. Only the root of a gather or a scatter has the large buffer, so only the root checks it.
Result<void> check_parts(const Operation& o, int rank, int size) {
    const auto parts = static_cast<std::size_t>(size);
    bool fits = true;
    switch (o.kind) {
        case Collective::all_gather:
            fits = o.out.count == o.in.count * parts;
            break;
        case Collective::gather:
            fits = rank != o.root || o.out.count == o.in.count * parts;
            break;
        case Collective::reduce_scatter:
            fits = o.in.count == o.out.count * parts;
            break;
        case Collective::scatter:
            fits = rank != o.root || o.in.count == o.out.count * parts;
            break;
        case Collective::all_to_all:
            fits = o.in.count == o.out.count && o.in.count % parts == 0;
            break;
        default:
            break;
    }
    // The buffers of an exchange belong to two messages, which may differ. An unused buffer has
    // count 0 and no type of its own.
    const bool both = o.kind != Collective::exchange && o.in.count && o.out.count;
    if (fits && !(both && o.in.type != o.out.type)) return {};
    return usage_error(describe(o) + ": the buffers do not fit each other on " +
                       std::to_string(size) + " ranks: in has " + std::to_string(o.in.count) + " " +
                       std::string(to_string(o.in.type)) + ", out has " +
                       std::to_string(o.out.count) + " " + std::string(to_string(o.out.type)));
}

}  // namespace

// Only what this rank can see alone. Whether the ranks agree is the backend's question.
Result<void> check(const Operation& o, int rank, int size) {
    auto wrong = [&](const std::string& what) -> Error {
        return usage_error(describe(o) + " " + what);
    };
    if (reduces(o.kind) && o.type() == DataType::uint64)
        return wrong("does not take U64; it takes F32, F64, F16, BF16, I32, I64 and U8");
    if (reduces(o.kind) && o.op == ReduceOp::avg && is_integer(o.type()))
        return wrong("cannot average integers; use sum and divide the result");
    for (int other : {o.root, o.source}) {
        if (other < 0 || other >= size)
            return wrong("names rank " + std::to_string(other) + ", but the ranks are 0 to " +
                         std::to_string(size - 1));
        // An exchange may name this rank: in a group of one, every neighbour is the rank itself.
        if (!o.is_collective() && o.kind != Collective::exchange && other == rank)
            return wrong("names this rank as its own peer; name another rank");
    }
    for (const Buffer& buffer : {o.in, o.out}) {
        if (buffer.count && !buffer.data)
            return wrong("has no buffer (null) for " + std::to_string(buffer.count) + " elements");
    }
    return check_parts(o, rank, size);
}

// A call between two ranks has different peers on both sides, so its root does not count.
Opinion opinion_of(const Operation& o) {
    Opinion opinion{o.sequence,
                    o.count(),
                    static_cast<std::uint32_t>(o.kind),
                    static_cast<std::uint32_t>(o.type()),
                    static_cast<std::uint32_t>(o.op),
                    static_cast<std::uint32_t>(has_root(o.kind) ? o.root : 0),
                    {}};
    std::memcpy(opinion.caller, o.caller,
                std::min(std::strlen(o.caller), sizeof opinion.caller - 1));
    return opinion;
}

std::string bytes_of(const Opinion& opinion) {
    return {reinterpret_cast<const char*>(&opinion), sizeof opinion};
}

Opinion opinion_in(const std::string& bytes) {
    Opinion opinion{};
    if (bytes.size() == sizeof opinion) std::memcpy(&opinion, bytes.data(), sizeof opinion);
    // It is printed, and it comes from another process.
    opinion.caller[sizeof opinion.caller - 1] = 0;
    return opinion;
}

namespace {

// Builds an operation only to print it. It has no pointers.
std::string text_of(const Opinion& opinion) {
    Operation o;
    o.kind = static_cast<Collective>(opinion.kind);
    o.in = o.out = {nullptr, opinion.count, static_cast<DataType>(opinion.type)};
    o.sequence = opinion.sequence;
    o.caller = opinion.caller;
    std::string text = describe(o);
    if (reduces(o.kind)) text += ", operator " + name_in(kOperators, opinion.op);
    if (has_root(o.kind)) text += ", root " + std::to_string(opinion.root);
    return text;
}

}  // namespace

std::string disagreement(const Opinion& mine, const Opinion& theirs, const std::string& other) {
    const std::string text = other + " calls " + text_of(theirs) + "; this rank calls " +
                             text_of(mine) +
                             "; all ranks must make the same calls in the same order";
    // One is in a step and the other one is not: most often it has run out of samples.
    if (std::strcmp(mine.caller, theirs.caller) == 0) return text;
    return text + "; where ranks have unequal numbers of steps, use Join (gradients/join.h)";
}

namespace {

// The operator is a template argument, so the loop makes no call for each element.
template <class T, class Compute>
void each(void* out, const void* a, const void* b, std::size_t count, Compute compute) {
    const T* x = static_cast<const T*>(a);
    const T* y = static_cast<const T*>(b);
    T* to = static_cast<T*>(out);
    for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<T>(compute(x[i], y[i]));
}

// The loop for one type and operator. T is the element type, W the type that it computes in. A NaN
// on either side gives a NaN: min and max must not hide it. `x != x` is true only for a NaN.
template <class T, class W>
ReduceFunction function_of(ReduceOp op) {
    switch (op) {
        case ReduceOp::min:
            return [](void* o, const void* a, const void* b, std::size_t n) {
                each<T>(o, a, b, n, [](W x, W y) { return x < y || x != x ? x : y; });
            };
        case ReduceOp::max:
            return [](void* o, const void* a, const void* b, std::size_t n) {
                each<T>(o, a, b, n, [](W x, W y) { return x > y || x != x ? x : y; });
            };
        case ReduceOp::product:
            return [](void* o, const void* a, const void* b, std::size_t n) {
                each<T>(o, a, b, n, [](W x, W y) { return static_cast<W>(x * y); });
            };
        default:
            return [](void* o, const void* a, const void* b, std::size_t n) {
                each<T>(o, a, b, n, [](W x, W y) { return static_cast<W>(x + y); });
            };
    }
}

template <class T>
void divide_as(Buffer buffer, double divisor) {
    T* values = static_cast<T*>(buffer.data);
    // The 16-bit types are divided as float and rounded once.
    using W = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const W by = static_cast<W>(divisor);
    for (std::size_t i = 0; i < buffer.count; ++i)
        values[i] = static_cast<T>(static_cast<W>(values[i]) / by);
}

}  // namespace

ReduceFunction reduce_function(DataType type, ReduceOp op) {
    switch (type) {
        case DataType::float32:
            return function_of<float, float>(op);
        case DataType::float64:
            return function_of<double, double>(op);
        case DataType::float16:
            return function_of<Half, float>(op);
        case DataType::bfloat16:
            return function_of<BFloat16, float>(op);
        // Sum and product use the unsigned type: a signed overflow is undefined in C++, an unsigned
        // one wraps around. The resulting bits are those of two's complement. min and max need the
        // sign.
        case DataType::int32:
            return op == ReduceOp::min || op == ReduceOp::max
                       ? function_of<std::int32_t, std::int32_t>(op)
                       : function_of<std::uint32_t, std::uint32_t>(op);
        case DataType::int64:
            return op == ReduceOp::min || op == ReduceOp::max
                       ? function_of<std::int64_t, std::int64_t>(op)
                       : function_of<std::uint64_t, std::uint64_t>(op);
        case DataType::uint8:
            return function_of<std::uint8_t, std::uint32_t>(op);
        // check() refuses this type. The function still has to return something.
        case DataType::uint64:
            break;
    }
    return function_of<std::uint64_t, std::uint64_t>(op);
}

void divide(Buffer buffer, double by) {
    switch (buffer.type) {
        case DataType::float32:
            return divide_as<float>(buffer, by);
        case DataType::float64:
            return divide_as<double>(buffer, by);
        case DataType::float16:
            return divide_as<Half>(buffer, by);
        case DataType::bfloat16:
            return divide_as<BFloat16>(buffer, by);
        default:
            // check() refuses the average of integers, so only a mistake in this library leads
            // here.
            DDPRUN_CHECK(false, "only floating types are divided");
    }
}

}  // namespace ddprun::trainer

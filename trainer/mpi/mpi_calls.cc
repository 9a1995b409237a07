// The tables of types and operators, and one call for each operation.
#include "trainer/mpi/mpi_calls.h"

#include <climits>
#include <cstring>
#include <map>
#include <utility>

namespace ddprun::trainer {
namespace {

bool is_half(DataType type) { return type == DataType::float16 || type == DataType::bfloat16; }

// MPI gives its function no argument of ours, so each pair has a function.
template <DataType type, ReduceOp op>
void combine(void* in, void* both, int* count, MPI_Datatype*) {
    static const ReduceFunction function = reduce_function(type, op);
    function(both, in, both, static_cast<std::size_t>(*count));
}

template <DataType type>
MPI_User_function* function_of(ReduceOp op) {
    switch (op) {
        case ReduceOp::min:
            return combine<type, ReduceOp::min>;
        case ReduceOp::max:
            return combine<type, ReduceOp::max>;
        case ReduceOp::product:
            return combine<type, ReduceOp::product>;
        default:
            return combine<type, ReduceOp::sum>;
    }
}

MPI_User_function* function_of(DataType type, ReduceOp op) {
    switch (type) {
        case DataType::float16:
            return function_of<DataType::float16>(op);
        case DataType::bfloat16:
            return function_of<DataType::bfloat16>(op);
        case DataType::float64:
            return function_of<DataType::float64>(op);
        default:
            return function_of<DataType::float32>(op);
    }
}

// Made at the first use, kept as long as the process.
MPI_Op own_operator(DataType type, ReduceOp op) {
    static std::map<std::pair<DataType, ReduceOp>, MPI_Op> made;
    const auto [at, is_new] = made.try_emplace({type, op}, MPI_OP_NULL);
    // The smaller one of +0 and -0 depends on their order. All ranks must take the same one, so MPI
    // is told to keep the order.
    const int any_order = op != ReduceOp::min && op != ReduceOp::max;
    if (is_new) MPI_Op_create(function_of(type, op), any_order, &at->second);
    return at->second;
}

// The average is a sum that complete() divides.
MPI_Op mpi_operator(DataType type, ReduceOp op) {
    if (op == ReduceOp::avg) op = ReduceOp::sum;
    const bool orders = op == ReduceOp::min || op == ReduceOp::max;
    if (is_half(type) || (orders && !is_integer(type))) return own_operator(type, op);
    switch (op) {
        case ReduceOp::min:
            return MPI_MIN;
        case ReduceOp::max:
            return MPI_MAX;
        case ReduceOp::product:
            return MPI_PROD;
        default:
            return MPI_SUM;
    }
}

// The elements of one rank, as MPI counts them.
std::size_t elements(const Operation& o, int size) {
    return o.kind == Collective::all_to_all ? o.in.count / static_cast<std::size_t>(size)
                                            : o.count();
}

// Part `rank` of a buffer whose parts are as large as `part`.
void* part_of(const Buffer& whole, const Buffer& part, int rank) {
    return static_cast<std::byte*>(whole.data) + part.bytes() * static_cast<std::size_t>(rank);
}

// In place, this rank's part is where MPI wants it already.
void* unless_in_place(const Buffer& part, const Buffer& whole, int rank) {
    return whole.data && part.data == part_of(whole, part, rank) ? MPI_IN_PLACE : part.data;
}

// MPI's own way in place has another layout: there the result comes to the front.
int reduce_scatter(const Operation& o, MPI_Comm group, int rank, int count, MpiCall& call) {
    void* to = o.out.data;
    if (to == part_of(o.in, o.out, rank)) {
        call.result.resize(o.out.bytes());
        to = call.result.data();
    }
    return MPI_Ireduce_scatter_block(o.in.data, to, count, mpi_type(o.out.type),
                                     mpi_operator(o.out.type, o.op), group, call.next());
}

int gather_or_scatter(const Operation& o, MPI_Comm group, int rank, int count, MpiCall& call) {
    const MPI_Datatype type = mpi_type(o.type());
    const bool root = rank == o.root;
    if (o.kind == Collective::gather)
        return MPI_Igather(root ? unless_in_place(o.in, o.out, rank) : o.in.data, count, type,
                           o.out.data, count, type, o.root, group, call.next());
    return MPI_Iscatter(o.in.data, count, type,
                        root ? unless_in_place(o.out, o.in, rank) : o.out.data, count, type, o.root,
                        group, call.next());
}

}  // namespace

MPI_Datatype mpi_type(DataType type) {
    switch (type) {
        case DataType::float32:
            return MPI_FLOAT;
        case DataType::float64:
            return MPI_DOUBLE;
        case DataType::int32:
            return MPI_INT32_T;
        case DataType::int64:
            return MPI_INT64_T;
        case DataType::uint64:
            return MPI_UINT64_T;
        case DataType::float16:
        case DataType::bfloat16:
            return MPI_UINT16_T;
        case DataType::uint8:
            break;
    }
    return MPI_UINT8_T;
}

Result<void> check_size(const Operation& o, int size) {
    for (const std::size_t count : {elements(o, size), o.is_collective() ? 0 : o.out.count})
        if (count > INT_MAX)
            return usage_error(describe(o) + ": MPI counts to 2147483647 elements for each rank, " +
                               std::to_string(count) + " are too many; make several calls");
    return {};
}

int begin_collective(const Operation& o, MPI_Comm group, int rank, int size, MpiCall& call) {
    const int count = static_cast<int>(elements(o, size));
    const MPI_Datatype type = mpi_type(o.type());
    switch (o.kind) {
        case Collective::all_reduce:
            return MPI_Iallreduce(MPI_IN_PLACE, o.out.data, count, type,
                                  mpi_operator(o.type(), o.op), group, call.next());
        case Collective::broadcast:
            return MPI_Ibcast(o.out.data, count, type, o.root, group, call.next());
        case Collective::reduce:
            return MPI_Ireduce(rank == o.root ? MPI_IN_PLACE : o.in.data, o.out.data, count, type,
                               mpi_operator(o.type(), o.op), o.root, group, call.next());
        case Collective::all_gather:
            return MPI_Iallgather(unless_in_place(o.in, o.out, rank), count, type, o.out.data,
                                  count, type, group, call.next());
        case Collective::reduce_scatter:
            return reduce_scatter(o, group, rank, count, call);
        case Collective::gather:
        case Collective::scatter:
            return gather_or_scatter(o, group, rank, count, call);
        case Collective::all_to_all:
            return MPI_Ialltoall(o.in.data == o.out.data ? MPI_IN_PLACE : o.in.data, count, type,
                                 o.out.data, count, type, group, call.next());
        default:
            return MPI_Ibarrier(group, call.next());
    }
}

void complete(const Operation& o, int rank, int size, const MpiCall& call) {
    if (!call.result.empty()) std::memcpy(o.out.data, call.result.data(), call.result.size());
    const bool reduces = o.kind == Collective::all_reduce || o.kind == Collective::reduce_scatter ||
                         (o.kind == Collective::reduce && rank == o.root);
    if (reduces && o.op == ReduceOp::avg) divide(o.out, size);
}

}  // namespace ddprun::trainer

// The functions of NCCL over shared memory: each rank has a place there for what it contributes.
#include "tests/trainer/gpu_host/nccl_double.h"

#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>

#include "tests/trainer/gpu_host/gpu_host.h"
#include "trainer/group/operation.h"
#include "trainer/nccl/nccl_library.h"

namespace ddprun::trainer {
namespace test {
namespace {

constexpr int kComms = 24, kRanks = 4, kSplits = 8;
constexpr int kBusyAfterSplit = 5;
constexpr std::size_t kBytes = std::size_t{1} << 20, kMail = std::size_t{1} << 16;

// What one rank says about a call.
struct Said {
    std::uint64_t count;
    int kind, type, op, root;
    bool operator==(const Said&) const = default;
};

// One communicator, as its ranks share it.
struct Shared {
    std::atomic<int> joined[kRanks];
    std::atomic<std::uint64_t> arrived[kRanks], left[kRanks];  // numbers of calls
    Said said[kRanks];
    std::atomic<std::uint64_t> sent[kRanks][kRanks], received[kRanks][kRanks];
    std::atomic<int> color[kSplits][kRanks];      // + 2
    std::atomic<int> part_slot[kSplits][kRanks];  // + 1, at the first rank of a part
    char data[kRanks][kBytes];
    char mail[kRanks][kRanks][kMail];
};

struct Memory {
    std::atomic<int> used;
    Shared comms[kComms];
};
Memory* memory = nullptr;

NcclFaults faults;
std::mutex log_mutex;
std::vector<std::string> launches;
std::atomic<int> calls{0};

}  // namespace

void prepare_nccl() {
    memory = static_cast<Memory*>(mmap(nullptr, sizeof(Memory), PROT_READ | PROT_WRITE,
                                       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
}
NcclFaults& nccl_faults() { return faults; }
std::vector<std::string> nccl_launches() {
    std::lock_guard lock(log_mutex);
    return launches;
}
int nccl_calls() { return calls; }

}  // namespace test

// A communicator of this process.
struct nccl::Comm {
    int slot = -1, rank = 0, size = 0;
    std::atomic<std::uint64_t> given{0};  // calls, as all ranks count them
    std::atomic<bool> aborted{false}, failed{false};
    // How often it still says that its last call is not over. Until then it takes no other one.
    std::atomic<int> busy{0};
    int splits = 0;
    // A part that is being made: of which communicator, in which split, by which color.
    nccl::Comm* parent = nullptr;
    int split = 0, color = 0;

    test::Shared& shared() const { return test::memory->comms[slot]; }
};

namespace test {
namespace {

using nccl::CommHandle;
using nccl::ResultCode;

DataType type_of(int type) {
    switch (type) {
        case nccl::float64:
            return DataType::float64;
        case nccl::float16:
            return DataType::float16;
        case nccl::bfloat16:
            return DataType::bfloat16;
        case nccl::int32:
            return DataType::int32;
        case nccl::int64:
            return DataType::int64;
        case nccl::uint64:
            return DataType::uint64;
        case nccl::uint8:
            return DataType::uint8;
        default:
            return DataType::float32;
    }
}

ReduceOp op_of(int op) {
    constexpr ReduceOp kOps[] = {ReduceOp::sum, ReduceOp::product, ReduceOp::max, ReduceOp::min,
                                 ReduceOp::avg};
    return kOps[op];
}

// One collective call of this rank.
struct Call {
    CommHandle comm;
    Collective kind;
    const void* in;
    void* out;
    std::size_t in_bytes, out_bytes;
    Said said;

    std::size_t width() const { return size_of(type_of(said.type)); }
    const char* of(int rank) const { return comm->shared().data[rank]; }

    // The reduction of the values from `offset` on, in the order of the ranks.
    void reduce(std::size_t offset) const {
        const DataType type = type_of(said.type);
        const ReduceOp op = op_of(said.op);
        std::memcpy(out, of(0) + offset, out_bytes);
        for (int r = 1; r < comm->size; ++r)
            reduce_function(type, op)(out, out, of(r) + offset, out_bytes / width());
        if (op == ReduceOp::avg) divide({out, out_bytes / width(), type}, comm->size);
    }
    // Part `index` of each rank's values, one behind the other.
    void gather(std::size_t index, std::size_t part) const {
        for (int r = 0; r < comm->size; ++r)
            std::memcpy(static_cast<char*>(out) + static_cast<std::size_t>(r) * part,
                        of(r) + index * part, part);
    }
    void finish() const {
        const auto mine = static_cast<std::size_t>(comm->rank);
        const std::size_t part = said.count * width();
        switch (kind) {
            case Collective::all_reduce:
                return reduce(0);
            case Collective::reduce:
                return comm->rank == said.root ? reduce(0) : void();
            case Collective::reduce_scatter:
                return reduce(mine * part);
            case Collective::broadcast:
                return void(std::memcpy(out, of(said.root), part));
            case Collective::all_gather:
                return gather(0, part);
            case Collective::gather:
                return comm->rank == said.root ? gather(0, part) : void();
            case Collective::scatter:
                return void(std::memcpy(out, of(said.root) + mine * part, part));
            default:
                return gather(mine, part);
        }
    }
};

// Puts this rank's values where the others read them, when all are through the call before; takes
// the result when all have done so.
Device::Run run_of(const Call& call) {
    return [call, number = ++call.comm->given, arrived = false]() mutable {
        Shared& shared = call.comm->shared();
        const int size = call.comm->size, rank = call.comm->rank;
        if (call.comm->aborted) return true;
        if (!arrived) {
            for (int r = 0; r < size; ++r)
                if (shared.left[r] + 1 < number) return false;
            std::memcpy(shared.data[rank], call.in, call.in_bytes);
            shared.said[rank] = call.said;
            shared.arrived[rank] = number;
            arrived = true;
        }
        for (int r = 0; r < size; ++r)
            if (shared.arrived[r] < number || !(shared.said[r] == call.said)) return false;
        call.finish();
        shared.left[rank] = number;
        return true;
    };
}

// What goes wrong with this call. `hangs`: it is on the stream, and ends only with an abort. One
// that fails does so when it runs.
ResultCode misbehave(CommHandle comm, int number, GpuStream stream, bool& hangs) {
    const bool fails = number == faults.fails_at;
    hangs = fails || number == faults.hangs_at;
    if (hangs)
        Device::get().give(stream, {"a collective that hangs", {}, [comm, fails] {
                                        return [comm, fails] {
                                            if (fails) comm->failed = true;
                                            return comm->aborted.load();
                                        };
                                    }});
    if (number == faults.returns_late_at) {
        const auto until = std::chrono::steady_clock::now() + faults.late;
        while (!comm->aborted && std::chrono::steady_clock::now() < until)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return nccl::success;
}

void note(CommHandle comm, Collective kind, std::size_t count, int op) {
    Operation o;
    o.kind = kind;
    o.in = o.out = {nullptr, count, DataType::uint8};
    std::string text = describe(o);
    std::lock_guard lock(log_mutex);
    launches.push_back(std::to_string(comm->size) + ": " + text.substr(0, text.find(" number")) +
                       " of " + std::to_string(count) + (op == nccl::avg ? ", avg" : ""));
}

// Refused like a call of the real one before the last call was over.
bool takes_a_call(CommHandle comm) {
    if (comm->busy > 0) return false;
    comm->busy = faults.busy;
    return true;
}

ResultCode collective(Collective kind, const void* in, void* out, std::size_t count, int type,
                      int op, int root, CommHandle comm, GpuStream stream) {
    if (!takes_a_call(comm)) return nccl::invalid_argument;
    const int number = ++calls;
    note(comm, kind, count, op);
    bool hangs = false;
    (void)misbehave(comm, number, stream, hangs);
    if (hangs) return nccl::success;
    const std::size_t part = count * size_of(type_of(type));
    const std::size_t all = part * static_cast<std::size_t>(comm->size);
    const bool is_root = comm->rank == root;
    Call call{comm, kind, in, out, part, part, {count, static_cast<int>(kind), type, op, root}};
    if (kind == Collective::reduce_scatter || kind == Collective::all_to_all) call.in_bytes = all;
    if (kind == Collective::all_gather || kind == Collective::all_to_all) call.out_bytes = all;
    if (kind == Collective::scatter) call.in_bytes = is_root ? all : 0;
    if (kind == Collective::gather) call.out_bytes = is_root ? all : 0;
    if (kind == Collective::reduce) call.out_bytes = is_root ? part : 0;
    if (kind == Collective::broadcast) call.in_bytes = is_root ? part : 0;
    DDPRUN_CHECK(call.in_bytes <= kBytes, "the double of NCCL takes up to 1 MiB");
    Operation named;
    named.kind = kind;
    const std::string name = describe(named);
    Device::get().give(stream,
                       {name.substr(0, name.find(" number")) + " call " + std::to_string(number),
                        {reads(in, call.in_bytes), writes(out, call.out_bytes)},
                        [call] { return run_of(call); }});
    return comm->busy > 0 ? nccl::in_progress : nccl::success;
}

ResultCode get_version(int* version) {
    *version = nccl::kOldestVersion;
    return nccl::success;
}

ResultCode get_unique_id(nccl::UniqueId* id) {
    const int slot = memory->used++;
    std::memset(id, 0, sizeof *id);
    std::memcpy(id->internal, &slot, sizeof slot);
    return nccl::success;
}

ResultCode comm_init(CommHandle* comm, int ranks, nccl::UniqueId id, int rank, nccl::Config*) {
    auto* made = new nccl::Comm;
    std::memcpy(&made->slot, id.internal, sizeof made->slot);
    made->rank = rank;
    made->size = ranks;
    made->shared().joined[rank] = 1;
    *comm = made;
    return nccl::in_progress;
}

// Finds out this rank's place in a part of its parent, when all ranks have told their colors.
bool resolve_part(nccl::Comm& part) {
    if (part.slot >= 0) return true;
    Shared& from = part.parent->shared();
    std::vector<int> members;
    for (int r = 0; r < part.parent->size; ++r) {
        const int color = from.color[part.split][r];
        if (!color) return false;
        if (color == part.color + 2) members.push_back(r);
    }
    auto& slot = from.part_slot[part.split][members.front()];
    if (part.parent->rank == members.front() && !slot) slot = memory->used++ + 1;
    if (!slot) return false;
    part.size = static_cast<int>(members.size());
    for (std::size_t i = 0; i < members.size(); ++i)
        if (members[i] == part.parent->rank) part.rank = static_cast<int>(i);
    part.slot = slot - 1;
    part.shared().joined[part.rank] = 1;
    return true;
}

// What it returns is the state of the part, as with the real one. The parent's own comes later.
ResultCode comm_split(CommHandle comm, int color, int, CommHandle* part, nccl::Config*) {
    if (faults.split_fails) return nccl::internal_error;
    if (!takes_a_call(comm)) return nccl::invalid_argument;
    comm->busy = kBusyAfterSplit;
    const int number = comm->splits++;
    comm->shared().color[number][comm->rank] = color + 2;
    *part = nullptr;
    if (color < 0) return nccl::success;
    auto* made = new nccl::Comm;
    made->parent = comm;
    made->split = number;
    made->color = color;
    *part = made;
    return nccl::success;
}

ResultCode async_error(CommHandle comm, ResultCode* error) {
    *error = nccl::in_progress;
    if (comm->failed) *error = nccl::remote_error;
    if (comm->failed || faults.never_ready || !resolve_part(*comm)) return nccl::success;
    if (comm->busy > 0 && --comm->busy > 0) return nccl::success;
    for (int r = 0; r < comm->size; ++r)
        if (!comm->shared().joined[r]) return nccl::success;
    *error = nccl::success;
    return nccl::success;
}

ResultCode done(CommHandle) { return nccl::success; }

// As the real one it frees memory of the GPU, which waits for all that runs there.
ResultCode comm_abort(CommHandle comm) {
    comm->aborted = true;
    Device::get().host_waits_for_all();
    return nccl::success;
}

ResultCode send(const void* in, std::size_t count, nccl::Type type, int to, CommHandle comm,
                GpuStream stream) {
    const std::size_t bytes = count * size_of(type_of(type));
    DDPRUN_CHECK(bytes <= kMail, "the double of NCCL sends up to 64 KiB");
    const auto run = [=] {
        return [=] {
            Shared& shared = comm->shared();
            if (comm->aborted) return true;
            if (shared.sent[comm->rank][to] != shared.received[comm->rank][to]) return false;
            std::memcpy(shared.mail[comm->rank][to], in, bytes);
            ++shared.sent[comm->rank][to];
            return true;
        };
    };
    Device::get().give(stream, {"send", {reads(in, bytes)}, run});
    return nccl::success;
}

ResultCode receive(void* out, std::size_t count, nccl::Type type, int from, CommHandle comm,
                   GpuStream stream) {
    const std::size_t bytes = count * size_of(type_of(type));
    const auto run = [=] {
        return [=] {
            Shared& shared = comm->shared();
            if (comm->aborted) return true;
            if (shared.sent[from][comm->rank] == shared.received[from][comm->rank]) return false;
            std::memcpy(out, shared.mail[from][comm->rank], bytes);
            ++shared.received[from][comm->rank];
            return true;
        };
    };
    Device::get().give(stream, {"receive", {writes(out, bytes)}, run});
    return nccl::success;
}

nccl::Functions functions() {
    nccl::Functions f;
    f.GetVersion = get_version;
    f.GetUniqueId = get_unique_id;
    f.CommInitRankConfig = comm_init;
    f.CommGetAsyncError = async_error;
    f.CommFinalize = f.CommDestroy = done;
    f.CommAbort = comm_abort;
    f.CommSplit = comm_split;
    f.GroupStart = f.GroupEnd = [] { return nccl::success; };
    f.AllReduce = [](const void* in, void* out, std::size_t n, nccl::Type t, nccl::Op op,
                     CommHandle c, GpuStream s) {
        return collective(Collective::all_reduce, in, out, n, t, op, 0, c, s);
    };
    f.Broadcast = [](const void* in, void* out, std::size_t n, nccl::Type t, int root, CommHandle c,
                     GpuStream s) {
        return collective(Collective::broadcast, in, out, n, t, 0, root, c, s);
    };
    f.Reduce = [](const void* in, void* out, std::size_t n, nccl::Type t, nccl::Op op, int root,
                  CommHandle c, GpuStream s) {
        return collective(Collective::reduce, in, out, n, t, op, root, c, s);
    };
    f.AllGather = [](const void* in, void* out, std::size_t n, nccl::Type t, CommHandle c,
                     GpuStream s) {
        return collective(Collective::all_gather, in, out, n, t, 0, 0, c, s);
    };
    f.ReduceScatter = [](const void* in, void* out, std::size_t n, nccl::Type t, nccl::Op op,
                         CommHandle c, GpuStream s) {
        return collective(Collective::reduce_scatter, in, out, n, t, op, 0, c, s);
    };
    f.Gather = [](const void* in, void* out, std::size_t n, nccl::Type t, int root, CommHandle c,
                  GpuStream s) {
        return collective(Collective::gather, in, out, n, t, 0, root, c, s);
    };
    f.Scatter = [](const void* in, void* out, std::size_t n, nccl::Type t, int root, CommHandle c,
                   GpuStream s) {
        return collective(Collective::scatter, in, out, n, t, 0, root, c, s);
    };
    f.AlltoAll = [](const void* in, void* out, std::size_t n, nccl::Type t, CommHandle c,
                    GpuStream s) {
        return collective(Collective::all_to_all, in, out, n, t, 0, 0, c, s);
    };
    f.Send = send;
    f.Recv = receive;
    f.GetErrorString = [](ResultCode code) {
        return code == nccl::remote_error ? "remote process exited or there was a network error"
               : code == nccl::invalid_argument ? "invalid argument"
                                                : "internal error";
    };
    f.GetLastError = [](CommHandle comm) {
        return comm && comm->busy > 0 ? "the previous operation is not over" : "";
    };
    f.MemAlloc = [](void** made, std::size_t bytes) {
        *made = *gpu_allocate(bytes);
        return nccl::success;
    };
    f.MemFree = [](void* freed) {
        gpu_free(freed);
        return nccl::success;
    };
    f.CommRegister = [](CommHandle, void* data, std::size_t, void** handle) {
        *handle = data;
        return nccl::success;
    };
    f.CommDeregister = [](CommHandle, void*) { return nccl::success; };
    return f;
}

}  // namespace
}  // namespace test

Result<const nccl::Functions*> nccl_library() {
    static const nccl::Functions only = test::functions();
    return &only;
}

}  // namespace ddprun::trainer

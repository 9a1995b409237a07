// Reads a worker's files in /proc.
#include "diagnosis/standstill/sample_reader.h"

#include <sys/syscall.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/system/small_file.h"
#include "diagnosis/stacks/kernel_stack.h"
#include "diagnosis/stacks/open_files.h"
#include "diagnosis/stacks/process_memory.h"
#include "diagnosis/stacks/python_process.h"
#include "diagnosis/standstill/call_reader.h"
#include "keeper/killing/descendants.h"

namespace ddprun::agent {
namespace {

// The name that PyTorch gives to Gloo's threads.
constexpr std::string_view kGlooThread = "pt_gloo_runloop\n";
constexpr std::string_view kGlooConnections = "gloo_tcp_loop\n";
// Threads of a worker among which they are looked for: a worker may have thousands.
constexpr std::size_t kThreads = 512;
// After so many looks the list is made anew: soon at first, then twice as late each time.
constexpr int kFirstLooks = 2, kMostLooks = 64;
// Processes that a worker has started and whose CPU time counts.
constexpr std::size_t kChildren = 64;

std::string file_of(std::int64_t pid, const std::string& name) {
    return "/proc/" + std::to_string(pid) + "/" + name;
}

std::string file_of(std::int64_t pid, std::int64_t thread, const char* name) {
    return file_of(pid, "task/" + std::to_string(thread) + "/" + name);
}

// "202 0x7f… 0x189 0x0 0x7f… …": the number of the call and its arguments; "running" or -1 for
// none.
struct Call {
    long number = -1;
    std::uint64_t arguments[4] = {};
};

// Nothing where it may not be read.
std::optional<Call> call_in(const std::string& text) {
    if (text.empty()) return std::nullopt;
    std::istringstream words(text);
    Call call;
    if (!(words >> call.number)) return Call{};
    for (std::uint64_t& argument : call.arguments) words >> std::hex >> argument;
    return call;
}

// Other calls are taken for a wait for anything: a lock, another thread, a connection.
WaitingIn kind_of(long call) {
    switch (call) {
        case SYS_nanosleep:
        case SYS_clock_nanosleep:
            return WaitingIn::timer;
        case SYS_read:
        case SYS_pread64:
        case SYS_readv:
        case SYS_preadv:
        case SYS_recvfrom:
        case SYS_recvmsg:
        case SYS_openat:
            return WaitingIn::reading;
        case SYS_write:
        case SYS_pwrite64:
        case SYS_writev:
        case SYS_pwritev:
        case SYS_sendto:
        case SYS_sendmsg:
        case SYS_fsync:
            return WaitingIn::writing;
        case SYS_wait4:
        case SYS_waitid:
            return WaitingIn::child;
        default:
            return WaitingIn::anything;
    }
}

// A number in /proc/PID/io: "wchar: 1234".
std::uint64_t number_in(const std::string& text, std::string_view name) {
    const auto at = text.find(name);
    std::uint64_t count = 0;
    if (at != std::string::npos)
        std::from_chars(text.data() + at + name.size(), text.data() + text.size(), count);
    return count;
}

// Functions of torch.distributed that end when all ranks have come.
bool is_meeting(const PythonFrame& frame) {
    if (frame.file.find("/torch/distributed/") == std::string::npos) return false;
    const std::string name = frame.function.substr(frame.function.rfind('.') + 1);
    return name == "init_process_group" || name == "new_group" || name == "_store_based_barrier" ||
           name == "_new_process_group_helper";
}

// User and system time from "… S 1 2 3": the fields of proc(5) from the third on.
struct Stat {
    char state = '?';
    std::uint64_t cpu = 0;
    int threads = 0;
};

std::optional<Stat> stat_in(const std::string& text) {
    // The name before may have spaces and parentheses in it.
    const auto at = text.rfind(") ");
    if (at == std::string::npos) return std::nullopt;
    std::istringstream fields(text.substr(at + 2));
    std::string skipped;
    Stat stat;
    std::uint64_t user = 0, system = 0;
    fields >> stat.state;
    for (int i = 4; i <= 13; ++i) fields >> skipped;
    fields >> user >> system;
    for (int i = 16; i <= 19; ++i) fields >> skipped;
    if (!(fields >> stat.threads)) return std::nullopt;
    stat.cpu = user + system;
    return stat;
}

std::uint64_t cpu_of_children(std::int64_t pid) {
    std::uint64_t cpu = 0;
    for (const std::int64_t child : with_children(pid, kChildren))
        if (const auto stat =
                child == pid ? std::nullopt : stat_in(read_small_file(file_of(child, "stat"))))
            cpu += stat->cpu;
    return cpu;
}

// The main thread comes first, and is what the others wait for.
void read_functions(std::int64_t pid, ProgramPlace& place) {
    const PythonProcess python = read_python(pid, Threads::main);
    if (python.threads.empty()) return;
    const std::vector<PythonFrame>& frames = python.threads.front().frames;
    std::string all;
    for (const PythonFrame& frame : frames) all += frame_text(frame) + "\n";
    place.stack = hash_of(all);
    place.meets = std::ranges::any_of(frames, is_meeting);
    const auto own = std::ranges::find_if(frames, is_users_own);
    if (own == frames.end()) return;
    const auto index = static_cast<std::size_t>(own - frames.begin());
    place.place = hash_of(frame_text(*own) + called_operation(frames, index));
}

// Of a program that is not Python only the system call is known, with its arguments and the place
// from which it is called.
ProgramPlace read_place(std::int64_t pid, Address calls_at) {
    ProgramPlace place;
    place.children_cpu = cpu_of_children(pid);
    read_functions(pid, place);
    const std::string call = place.stack == 0 ? read_small_file(file_of(pid, pid, "syscall")) : "";
    if (!call.empty()) place.stack = hash_of(call);
    if (calls_at == 0) return place;
    ProcessMemory memory(pid);
    const std::optional<Calls> calls = read_calls(memory, calls_at);
    if (!calls || calls->pending == 0) return place;
    place.place = hash_of(calls->text);
    place.meets = calls->meets;
    place.call = calls->text;
    return place;
}

}  // namespace

SampleReader::SampleReader(std::int64_t pid, const std::string& proc)
    : pid_(pid),
      stat_(proc + "/" + std::to_string(pid) + "/stat"),
      io_(proc + "/" + std::to_string(pid) + "/io"),
      call_(proc + "/" + std::to_string(pid) + "/task/" + std::to_string(pid) + "/syscall") {}

// Threads come and go with their number, nearly always: one may replace another, and it has its
// name only when it runs. Those of Gloo are among the first.
void SampleReader::find_gloo(int threads) {
    if (threads != std::exchange(threads_, threads)) {
        list_again_ = kFirstLooks;
    } else {
        if (++looks_ < list_again_) return;
        list_again_ = std::min(2 * list_again_, kMostLooks);
    }
    looks_ = 0;
    std::vector<GlooThread> found;
    std::vector<std::int64_t> all = threads_of(pid_);
    if (all.size() > kThreads) all.resize(kThreads);
    for (const std::int64_t thread : all) {
        const std::string name = read_small_file(file_of(pid_, thread, "comm"));
        if (name == kGlooThread || name == kGlooConnections)
            found.push_back({KeptFile(file_of(pid_, thread, "io")),
                             KeptFile(file_of(pid_, thread, "syscall")), thread,
                             name == kGlooThread});
    }
    // Those that are known already keep their files.
    if (!std::ranges::equal(found, gloo_, {}, &GlooThread::id, &GlooThread::id))
        gloo_ = std::move(found);
}

WorkerSample SampleReader::read(Address calls_at) {
    WorkerSample sample;
    const std::optional<Stat> stat = stat_in(stat_.read());
    if (!stat) return sample;
    sample.state = stat->state;
    sample.cpu = stat->cpu;
    const std::string io = io_.read();
    sample.moved = number_in(io, "rchar: ") + number_in(io, "wchar: ");
    const std::optional<Call> main = call_in(call_.read());
    // A worker whose calls are hidden must not look like one outside of a collective.
    if (!main) return sample;
    sample.waiting = kind_of(main->number);
    if (calls_at == 0) {
        find_gloo(stat->threads);
        sample.is_known = read_gloo(sample);
        return sample;
    }
    ProcessMemory memory(pid_);
    const std::optional<Calls> calls = read_calls(memory, calls_at);
    if (!calls) return sample;
    sample.pending = calls->pending;
    // A large buffer takes its time, and a few lines of a log are not sent to other ranks.
    sample.sent = calls->count + (number_in(io, "wchar: ") >> 16);
    sample.is_known = true;
    return sample;
}

// False: /proc hides it.
bool SampleReader::read_gloo(WorkerSample& sample) {
    for (GlooThread& thread : gloo_) {
        sample.sent += number_in(thread.io.read(), "wchar: ");
        if (!thread.runs_collectives) continue;
        const std::optional<Call> call = call_in(thread.call.read());
        if (!call) return false;
        if (call->number == SYS_futex && call->arguments[3] != 0) ++sample.pending;
    }
    return true;
}

std::vector<ProgramPlace> read_places(const WatchedWorkers& workers, bool connections) {
    std::vector<ProgramPlace> places;
    std::vector<std::vector<TcpSocket>> sockets;
    const TcpSockets all = connections ? tcp_sockets() : TcpSockets();
    for (std::size_t i = 0; i < workers.pids.size(); ++i) {
        const std::int64_t pid = workers.pids[i];
        places.push_back(pid > 0 ? read_place(pid, workers.calls_of(i)) : ProgramPlace());
        sockets.push_back(pid > 0 && connections ? sockets_of(pid, all) : std::vector<TcpSocket>());
    }
    const std::vector<LostConnection> lost = lost_connections(sockets);
    for (std::size_t i = 0; i < places.size(); ++i) places[i].lost = lost[i];
    return places;
}

}  // namespace ddprun::agent

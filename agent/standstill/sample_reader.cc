// Reads a worker's files in /proc.
#include "agent/standstill/sample_reader.h"

#include <sys/syscall.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>
#include <string_view>

#include "agent/stacks/kernel_stack.h"
#include "agent/stacks/python_process.h"
#include "base/system/small_file.h"

namespace ddprun::agent {
namespace {

// The name that PyTorch gives to Gloo's threads.
constexpr std::string_view kGlooThread = "pt_gloo_runloop\n";
// Threads of a worker among which they are looked for: a worker may have thousands.
constexpr std::size_t kThreads = 512;

std::string file_of(std::int64_t pid, const std::string& name) {
    return "/proc/" + std::to_string(pid) + "/" + name;
}

std::string file_of(std::int64_t pid, std::int64_t thread, const char* name) {
    return file_of(pid, "task/" + std::to_string(thread) + "/" + name);
}

// "202 0x7f… 0x189 0x0 0x7f… …": the number of the call and its arguments; "running" or -1 for none.
struct Call {
    long number = -1;
    std::uint64_t arguments[4] = {};
};

// Nothing where it may not be read.
std::optional<Call> call_of(std::int64_t pid, std::int64_t thread) {
    const std::string text = read_small_file(file_of(pid, thread, "syscall"));
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
        case SYS_wait4:
        case SYS_waitid:
            return WaitingIn::child;
        default:
            return WaitingIn::anything;
    }
}

// From /proc/PID/io: "wchar: 1234".
std::uint64_t written_by(std::int64_t pid) {
    const std::string text = read_small_file(file_of(pid, "io"));
    constexpr std::string_view kName = "wchar: ";
    const auto at = text.find(kName);
    std::uint64_t count = 0;
    if (at != std::string::npos)
        std::from_chars(text.data() + at + kName.size(), text.data() + text.size(), count);
    return count;
}

// Functions of torch.distributed that end when all ranks have come.
bool is_meeting(const PythonFrame& frame) {
    if (frame.file.find("/torch/distributed/") == std::string::npos) return false;
    const std::string name = frame.function.substr(frame.function.rfind('.') + 1);
    return name == "init_process_group" || name == "new_group" || name == "_store_based_barrier" ||
           name == "_new_process_group_helper";
}

// FNV-1a, so that all nodes come to the same number.
std::uint32_t hash_of(const std::string& text) {
    std::uint32_t hash = 2166136261U;
    for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619U;
    return hash;
}

}  // namespace

// Threads come and go with their number, nearly always. Those of Gloo are among the first.
void SampleReader::find_gloo(int threads) {
    if (threads == threads_) return;
    threads_ = threads;
    gloo_.clear();
    std::vector<std::int64_t> all = threads_of(pid_);
    if (all.size() > kThreads) all.resize(kThreads);
    for (const std::int64_t thread : all)
        if (read_small_file(file_of(pid_, thread, "comm")) == kGlooThread) gloo_.push_back(thread);
}

WorkerSample SampleReader::read() {
    WorkerSample sample;
    const std::string stat = read_small_file(file_of(pid_, "stat"));
    // The name before may have spaces and parentheses in it.
    const auto at = stat.rfind(") ");
    if (at == std::string::npos) return sample;
    std::istringstream fields(stat.substr(at + 2));
    std::string skipped;
    std::uint64_t user = 0, system = 0;
    int threads = 0;
    fields >> sample.state;
    for (int i = 4; i <= 13; ++i) fields >> skipped;
    fields >> user >> system;
    for (int i = 16; i <= 19; ++i) fields >> skipped;
    if (!(fields >> threads)) return sample;
    sample.cpu = user + system;
    sample.written = written_by(pid_);
    find_gloo(threads);
    const std::optional<Call> main = call_of(pid_, pid_);
    // A worker whose calls are hidden must not look like one outside of a collective.
    if (!main) return sample;
    sample.waiting = kind_of(main->number);
    for (const std::int64_t thread : gloo_) {
        const std::optional<Call> call = call_of(pid_, thread);
        if (!call) return sample;
        if (call->number == SYS_futex && call->arguments[3] != 0) ++sample.pending;
    }
    sample.is_known = true;
    return sample;
}

// The main thread comes first, and is what the others wait for.
ProgramPlace read_place(std::int64_t pid) {
    ProgramPlace place;
    const PythonProcess python = read_python(pid, Threads::main);
    if (python.threads.empty()) return place;
    const std::vector<PythonFrame>& frames = python.threads.front().frames;
    place.meets = std::ranges::any_of(frames, is_meeting);
    const auto own = std::ranges::find_if(frames, is_users_own);
    if (own == frames.end()) return place;
    const auto index = static_cast<std::size_t>(own - frames.begin());
    place.place = hash_of(frame_text(*own) + called_operation(frames, index));
    return place;
}

}  // namespace ddprun::agent

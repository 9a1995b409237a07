// Looks at this host for a check: files, limits, devices, ledger.
#include "launcher/check/check_look.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>

#include "agent/host/gpu_share.h"
#include "agent/workers/python_command.h"
#include "base/loop/child_program.h"
#include "base/system/unique_fd.h"
#include "base/system/wait_in_time.h"
#include "launcher/in_slurm/slurm_calls.h"
#include "launcher/job/program_check.h"
#include "rendezvous/ledger/ledger_open.h"

namespace ddprun::launcher {
namespace {

// How long a file system may take to answer before that counts as a finding.
constexpr auto kFileLimit = std::chrono::seconds{10};
// The same for the interpreter, which may read thousands of files before it runs anything.
constexpr Duration kInterpreterLimit = std::chrono::seconds{20};

std::optional<std::int64_t> free_bytes(const std::string& folder) {
    const auto answer = wait_in_time(kFileLimit, [folder] {
        // f_bavail, not f_bfree: what an ordinary user may still write.
        struct statvfs status {};
        if (::statvfs(folder.c_str(), &status) != 0) return std::optional<std::int64_t>();
        return std::optional(static_cast<std::int64_t>(status.f_bavail) *
                             static_cast<std::int64_t>(status.f_frsize));
    });
    return answer.value_or(std::nullopt);
}

std::optional<std::int64_t> limit_of(int resource, bool hard) {
    rlimit limit{RLIM_INFINITY, RLIM_INFINITY};  // as it stays where a sandbox does not tell
    ::getrlimit(static_cast<__rlimit_resource>(resource), &limit);
    const rlim_t value = hard ? limit.rlim_max : limit.rlim_cur;
    return value == RLIM_INFINITY ? std::nullopt : std::optional(static_cast<std::int64_t>(value));
}

// Only a ledger that several nodes share is looked at: every node must see the one that the leader
// began.
void look_at_ledger(NodeFacts& facts, const JobInput& input) {
    const Plan& plan = input.plan;
    const rendezvous::LedgerPlace& place = plan.ledger.place;
    const auto& access = input.ledger_access;
    // A ledger in memory is the leader's alone; the other nodes never see it.
    if (plan.limits.max_nodes == 1 || !rendezvous::is_shared(place)) return;
    // A file system may never answer. Other kinds have deadlines of their own, and need no thread.
    using Claim = Result<rendezvous::LedgerClaim>;
    const auto claim = rendezvous::folder_of(place).empty()
                           ? std::optional<Claim>(rendezvous::read_claim(place, access))
                           : wait_in_time(kFileLimit, [place, access] {
                                 return rendezvous::read_claim(place, access);
                             });
    if (!claim)
        facts.ledger_fault = rendezvous::folder_of(place) + " does not answer";
    else if (!*claim)
        facts.ledger_fault = "cannot see the leader's ledger: " + claim->error().sentence();
    else
        facts.ledger_mark = (*claim)->mark;
}

// The device file of a GPU, "/dev/nvidia3". The number is the driver's minor number, which need not
// follow the order on the PCI bus. Empty: the driver does not say.
std::string device_of(const agent::Gpu& gpu) {
    std::ifstream file("/proc/driver/nvidia/gpus/" + gpu.address + "/information");
    for (std::string line; std::getline(file, line);) {
        const auto colon = line.find(':');
        if (!line.starts_with("Device Minor") || colon == std::string::npos) continue;
        const auto digit = line.find_first_of("0123456789", colon);
        if (digit != std::string::npos) return "/dev/nvidia" + line.substr(digit);
    }
    return "";
}

// Opens the device files. A GPU that Slurm has given to another job cannot be opened (its device
// cgroup forbids it), and that is right. So only the number of GPUs that can be opened is compared.
void look_at_devices(NodeFacts& facts, const std::vector<agent::Gpu>& gpus) {
    const int wanted = std::min(facts.gpus_given.value_or(0), static_cast<int>(gpus.size()));
    int opened = 0;
    std::string why;
    for (const agent::Gpu& gpu : gpus) {
        const std::string device = device_of(gpu);
        if (device.empty()) return;  // the driver does not tell, so nothing can be concluded
        const UniqueFd file(::open(device.c_str(), O_RDWR | O_CLOEXEC));
        if (file)
            ++opened;
        else
            why = device + ": " + std::strerror(errno);
    }
    if (opened < wanted)
        facts.gpu_faults.push_back("only " + std::to_string(opened) + " of " +
                                   std::to_string(wanted) + " GPUs can be opened (" + why +
                                   "); exclude the node (--exclude) and tell the site");
}

void look_at_gpus(NodeFacts& facts, const JobInput& input) {
    if (const auto given = input.environment.find("SLURM_GPUS_ON_NODE");
        given != input.environment.end() && !given->second.empty())
        facts.gpus_given = std::atoi(given->second.c_str());
    facts.gpus_shown = agent::count_devices(input.host.gpus, std::nullopt);
    // AMD's GPUs are not counted. Slurm's number is taken for theirs, so that no finding follows
    // from it.
    if (facts.gpus_shown == 0 && ::access("/dev/kfd", F_OK) == 0)
        facts.gpus_shown = facts.gpus_given.value_or(0);
    look_at_devices(facts, input.host.gpus);
}

bool is_first(const JobInput& input) {
    const auto rank = input.environment.find("RANK");
    return rank != input.environment.end() && rank->second == "0";
}

// One node asks for all.
void look_at_slurm(NodeFacts& facts, const JobInput& input) {
    if (!is_first(input) || input.slurm_job.number().empty()) return;
    boost::asio::io_context loop;
    const SlurmCalls calls(loop, input.slurm_job, input.environment);
    const auto asked = [&]() -> boost::asio::awaitable<void> {
        if (const auto delay = co_await calls.requeue_delay()) facts.requeue_delay = delay->count();
    };
    boost::asio::co_spawn(loop, asked, boost::asio::detached);
    loop.run();
}

// It is executed: only so one finds out that it stands still, or that its file system does.
void look_at_interpreter(NodeFacts& facts, const JobInput& input) {
    const std::vector<std::string>& argv = input.plan.workers.argv;
    const auto command = agent::python_command(argv);
    if (!facts.program_fault.empty() || (!command && !input.plan.program.python)) return;
    std::vector<std::string> words = command ? command->interpreter : std::vector{argv.front()};
    words.insert(words.end(), {"-c", ""});
    const auto run = run_program_now(words, kInterpreterLimit);
    if (run || run.error().code() != ErrorCode::timed_out) return;
    facts.program_fault = "program " + words.front() + ": no answer within " +
                          to_text(kInterpreterLimit) +
                          "; it stands still, or the file system on which it lies does: try `" +
                          words.front() + " -c ''` on this node";
}

// One node tries for all: it takes seconds.
void look_at_warmth(NodeFacts& facts, const JobInput& input, const Products& products) {
    using agent::warm::Mode;
    if (!products.warm_check || !is_first(input) || !facts.program_fault.empty()) return;
    const auto command = agent::python_command(input.plan.workers.argv);
    if (input.plan.warm == Mode::off || !command) return;
    facts.warm = products.warm_check(*command, facts.temporary, input.environment);
}

}  // namespace

NodeFacts look_at_node(const JobInput& input, const Products& products) {
    NodeFacts facts;
    facts.name = input.plan.node_name;
    facts.slots = input.plan.slots;
    look_at_ledger(facts, input);
    look_at_gpus(facts, input);
    // A check may be called without a program; the command then ends in an empty word.
    if (!input.plan.workers.argv.back().empty()) {
        const auto path = input.environment.find("PATH");
        const auto good = check_worker_program(input.plan, path == input.environment.end()
                                                               ? std::nullopt
                                                               : std::optional(path->second));
        if (!good) facts.program_fault = good.error().sentence();
    }
    facts.temporary = input.host.temporary_directory;
    look_at_interpreter(facts, input);
    look_at_warmth(facts, input, products);
    look_at_slurm(facts, input);
    facts.temporary_free = free_bytes(facts.temporary);
    facts.shared_memory_free = free_bytes("/dev/shm");
    facts.rdma = ::access("/sys/class/infiniband", F_OK) == 0;
    // RDMA runs into the soft limit of locked memory. Of open files the hard limit counts, because
    // ddprun raises its own soft limit to it.
    facts.locked_memory = limit_of(RLIMIT_MEMLOCK, false);
    facts.open_files = limit_of(RLIMIT_NOFILE, true);
    return facts;
}

}  // namespace ddprun::launcher

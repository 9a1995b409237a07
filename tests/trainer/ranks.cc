// Forks ranks, serves their store, and waits for their ends.
#include "tests/trainer/ranks.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "store/server/store_thread.h"

namespace ddprun::trainer::test {

std::unique_ptr<RankHost> (*make_rank_host)(int world) = nullptr;

// Port 0: the kernel chooses one. The backlog of 128 holds the calls of all ranks until the store
// serves.
Listener listen_on_loopback() {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (fd < 0 || bind(fd, reinterpret_cast<sockaddr*>(&address), size) || listen(fd, 128) ||
        getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size)) {
        throw std::runtime_error("no socket on loopback");
    }
    return {fd, ntohs(address.sin_port)};
}

namespace {

// Forks before the store's thread starts, so that the children have no other threads. A lock that
// another thread held at the fork would stay locked in the child. Until the store serves, the
// children's calls wait in the backlog of the listening socket.
Ends run(int world, std::chrono::seconds patience,
         const std::function<int(int rank, std::uint16_t port)>& child) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    const Listener listener = listen_on_loopback();
    const auto host = make_rank_host ? make_rank_host(world) : nullptr;
    std::vector<pid_t> pids;
    for (int rank = 0; rank < world; ++rank) {
        const pid_t pid = fork();
        // The child leaves by _exit(): destructors and exit handlers of the test must not run
        // twice.
        if (pid == 0) {
            close(listener.fd);
            int code = 99;
            try {
                if (host) host->enter(rank);
                code = child(rank, listener.port);
            } catch (const std::exception& problem) {
                fprintf(stderr, "rank %d: %s\n", rank, problem.what());
            }
            _exit(code);
        }
        pids.push_back(pid);
    }
    if (host) host->serve();
    auto store = store::StoreThread::start(listener.fd, {});
    Ends ends;
    for (pid_t pid : pids) {
        // A pidfd becomes readable when the process has ended, so poll() can wait for it with a
        // deadline. The deadline holds for all ranks together.
        const int fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            deadline - std::chrono::steady_clock::now());
        pollfd end{fd, POLLIN, 0};
        if (fd < 0 || poll(&end, 1, static_cast<int>(std::max<long>(left.count(), 0))) != 1)
            kill(pid, SIGKILL);
        close(fd);
        int status = 0;
        waitpid(pid, &status, 0);
        ends.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
    }
    return ends;
}

// What a launcher sets, for ranks that are all on one node.
std::map<std::string, std::string> variables(int rank, int world, int generation,
                                             std::uint16_t port) {
    return {{"RANK", std::to_string(rank)},
            {"LOCAL_RANK", std::to_string(rank)},
            {"WORLD_SIZE", std::to_string(world)},
            {"LOCAL_WORLD_SIZE", std::to_string(world)},
            {"MASTER_ADDR", "127.0.0.1"},
            {"MASTER_PORT", std::to_string(port)},
            {"TORCHELASTIC_RESTART_COUNT", std::to_string(generation)},
            {"TORCHELASTIC_RUN_ID", "test"}};
}

// Appends to the output, because a later generation may write to the same file. Standard error goes
// to it as well, so tests find warnings and errors there.
int execute(const std::vector<std::string>& command, const std::filesystem::path& output) {
    const int fd = open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    dup2(fd, 1);
    dup2(fd, 2);
    std::vector<char*> words;
    for (const auto& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    execv(words[0], words.data());
    // Only if the program cannot be executed; 127 is what a shell says then.
    return 127;
}

}  // namespace

// Wrong variables end the rank by the exception of `*`, as code 99.
Ends run_ranks(int world, const std::function<int(const Context&)>& body,
               std::chrono::seconds deadline) {
    return run(world, deadline, [&](int rank, std::uint16_t port) {
        return body(*Context::from_variables(variables(rank, world, 0, port)));
    });
}

Ends run_program(int world, int generation, const std::vector<std::string>& command,
                 const std::filesystem::path& output, std::chrono::seconds deadline) {
    std::filesystem::create_directories(output);
    return run(world, deadline, [&](int rank, std::uint16_t port) {
        for (const auto& [name, value] : variables(rank, world, generation, port)) {
            setenv(name.c_str(), value.c_str(), 1);
        }
        return execute(command, output / std::to_string(rank));
    });
}

TemporaryFolder::TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "ddprun-test-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
    path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

std::string read_all(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void write_all(const std::filesystem::path& file, const std::string& text) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << text;
}

}  // namespace ddprun::trainer::test

// Makes, lists and removes the private sockets of jobs (private_socket.h).
#include "operator/control/private_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <list>
#include <utility>

#include "base/loop/accept_loop.h"

namespace ddprun::rendezvous {
namespace {

namespace fs = std::filesystem;
using Local = boost::asio::local::stream_protocol;

constexpr char kBeforeProcess = '~';
constexpr const char* kNotYet = ".new-";  // a socket that does not listen yet
constexpr std::size_t kMostName = 48;
constexpr int kBacklog = 16;
constexpr std::size_t kMostSilent = 16;  // callers that have sent nothing yet

std::string text_of(uid_t user) { return std::to_string(user); }

// Where this user's sockets may be. A login shell and a step of Slurm may differ in the variable.
std::vector<std::string> folders_of_user() {
    std::vector<std::string> folders;
    const std::string user = text_of(::geteuid());
    if (const char* runtime = std::getenv("XDG_RUNTIME_DIR"); runtime && *runtime == '/')
        folders.push_back(std::string(runtime) + "/ddprun");
    folders.push_back("/run/user/" + user + "/ddprun");
    folders.push_back("/tmp/ddprun-" + user);
    return folders;
}

// Those of everybody; which of them can be read, the kernel decides.
std::vector<std::string> folders_of_all() {
    std::vector<std::string> folders = folders_of_user();
    std::error_code error;
    for (fs::directory_iterator one("/run/user", error), end; !error && one != end;
         one.increment(error))
        folders.push_back(one->path().string() + "/ddprun");
    for (fs::directory_iterator one("/tmp", error), end; !error && one != end; one.increment(error))
        if (one->path().filename().string().starts_with("ddprun-"))
            folders.push_back(one->path().string());
    return folders;
}

// Whether it is a folder that only its owner can enter; another user could have made it first
// (in /tmp).
bool is_private(const std::string& folder, uid_t& owner) {
    struct stat status {};
    if (::lstat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return false;
    owner = status.st_uid;
    return (status.st_mode & (S_IRWXG | S_IRWXO)) == 0;
}

bool have_private_folder(const std::string& folder) {
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return false;
    uid_t owner = 0;
    return is_private(folder, owner) && owner == ::geteuid();
}

bool address_of(const std::string& path, sockaddr_un& address) {
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) return false;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    return true;
}

// Whether no process listens there any more. A socket gets its name when it listens.
bool is_left(const std::string& path) {
    const auto called = call_private(path);
    return !called && called.error().code() == ErrorCode::closed;
}

std::vector<PrivateJob> jobs_in(const std::string& folder) {
    std::vector<PrivateJob> jobs;
    uid_t owner = 0;
    if (!is_private(folder, owner)) return jobs;
    std::error_code error;
    for (fs::directory_iterator one(folder, error), end; !error && one != end;
         one.increment(error)) {
        const std::string file = one->path().filename().string();
        const std::size_t at = file.rfind(kBeforeProcess);
        if (at == std::string::npos || file.starts_with('.')) continue;
        PrivateJob job{one->path().string(), file.substr(0, at), 0, owner, {}};
        std::from_chars(file.data() + at + 1, file.data() + file.size(), job.process);
        if (is_left(job.path)) {
            if (owner == ::geteuid()) ::unlink(job.path.c_str());
            continue;
        }
        std::error_code unknown;
        job.folder =
            fs::read_symlink("/proc/" + std::to_string(job.process) + "/cwd", unknown).string();
        jobs.push_back(std::move(job));
    }
    return jobs;
}

// A listening socket under a name of this folder. It is renamed when it listens, so a name that
// refuses connections belongs to no job.
Result<UniqueFd> listen_in(const std::string& folder, const std::string& path) {
    const auto failed = [&](const char* what) {
        return Error(ErrorCode::unavailable, path + ": " + what + ": " + std::strerror(errno));
    };
    const std::string before = folder + "/" + kNotYet + std::to_string(::getpid());
    sockaddr_un address{}, final_address{};
    errno = ENAMETOOLONG;
    if (!address_of(before, address) || !address_of(path, final_address)) return failed("bind");
    UniqueFd made(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!made) return failed("socket");
    ::unlink(before.c_str());
    if (::bind(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
        return failed("bind");
    if (::listen(made.get(), kBacklog) == 0 && ::rename(before.c_str(), path.c_str()) == 0)
        return made;
    const Error error = failed("listen");
    ::unlink(before.c_str());
    return error;
}

bool is_ours(int caller) {
    ucred who{};
    socklen_t size = sizeof who;
    return ::getsockopt(caller, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 &&
           who.uid == ::geteuid();
}

}  // namespace

std::string socket_name(const std::string& run_id) {
    std::string name = run_id.substr(0, kMostName);
    for (char& c : name) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                           (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
        if (!plain) c = '_';
    }
    if (name.empty() || name.front() == '.') name.insert(0, "_");
    return name;
}

Result<UniqueFd> call_private(const std::string& path) {
    const Error too_long(ErrorCode::unavailable, path + ": the path is too long for a socket");
    sockaddr_un address{};
    if (!address_of(path, address)) return too_long;
    UniqueFd made(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (made &&
        ::connect(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
        return made;
    const bool none = errno == ECONNREFUSED || errno == ENOENT;
    return Error(none ? ErrorCode::closed : ErrorCode::unavailable,
                 none ? "the job has ended" : path + ": " + std::strerror(errno));
}

// Callers wait in the backlog while no descriptor is left: that is not worth a line in the log.
struct PrivateSocket::State {
    State(Local::acceptor acceptor, std::string path, Take take)
        : path(std::move(path)),
          take(std::move(take)),
          accepting(
              std::move(acceptor),
              [this](Local::socket caller, const Local::endpoint&) { hear(std::move(caller)); },
              [](const std::string&) {}) {
        accepting.start();
    }
    ~State() {
        ::unlink(path.c_str());
        ::rmdir(fs::path(path).parent_path().c_str());  // only if it is empty
    }
    void hear(Local::socket caller);

    const std::string path;
    const Take take;
    std::list<std::shared_ptr<Local::socket>> silent;  // the oldest first; handlers hold it weakly
    AcceptLoopOf<Local> accepting;
};

// Who only looks whether there is a job closes the connection without a word (is_left).
void PrivateSocket::State::hear(Local::socket caller) {
    if (!is_ours(caller.native_handle())) return;
    boost::system::error_code ignored;
    caller.native_non_blocking(true, ignored);  // gRPC takes no other
    if (silent.size() == kMostSilent) silent.pop_front();
    const auto held = silent.emplace_back(std::make_shared<Local::socket>(std::move(caller)));
    held->async_wait(Local::socket::wait_read, [this, weak = std::weak_ptr(held)](
                                                   const boost::system::error_code& failed) {
        const auto one = weak.lock();
        if (!one) return;
        silent.remove(one);
        char first = 0;
        if (!failed && ::recv(one->native_handle(), &first, 1, MSG_PEEK | MSG_DONTWAIT) == 1)
            take(UniqueFd(one->release()));
    });
}

PrivateSocket::PrivateSocket(std::unique_ptr<State> state) : state_(std::move(state)) {}

PrivateSocket::~PrivateSocket() = default;

Result<std::unique_ptr<PrivateSocket>> PrivateSocket::open(boost::asio::io_context& loop,
                                                           const std::string& run_id, Take take) {
    Error why(ErrorCode::unavailable, "no folder for its socket");
    for (const std::string& folder : folders_of_user()) {
        if (!have_private_folder(folder)) continue;
        jobs_in(folder);  // removes what is left of killed ones
        std::string path =
            folder + "/" + socket_name(run_id) + kBeforeProcess + std::to_string(::getpid());
        auto made = listen_in(folder, path);
        if (!made) {
            why = made.error();
            continue;
        }
        Local::acceptor acceptor(loop, Local(), made->release());
        return std::unique_ptr<PrivateSocket>(new PrivateSocket(
            std::make_unique<State>(std::move(acceptor), std::move(path), std::move(take))));
    }
    return why;
}

std::vector<PrivateJob> private_jobs(bool all_users) {
    std::vector<std::string> folders = all_users ? folders_of_all() : folders_of_user();
    std::ranges::sort(folders);
    folders.erase(std::ranges::unique(folders).begin(), folders.end());
    std::vector<PrivateJob> jobs;
    for (const std::string& folder : folders)
        for (PrivateJob& job : jobs_in(folder))
            if (all_users || job.user == ::geteuid()) jobs.push_back(std::move(job));
    return jobs;
}

}  // namespace ddprun::rendezvous

// Connects the ranks, finds out which sockets Gloo opened and for which rank, and watches them.
#include "trainer/gloo/gloo_mesh.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <gloo/transport/tcp/device.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/system/no_pipe_signal.h"
#include "trainer/gloo/gloo_meeting.h"
#include "trainer/worker/local_address.h"

namespace ddprun::trainer {
namespace {

// The form must be Gloo's own, because we look for these texts in its messages.
std::string text_of(const sockaddr_storage& address) {
    char text[INET6_ADDRSTRLEN] = "";
    int port = 0;
    if (address.ss_family == AF_INET) {
        const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
        inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
        port = ntohs(v4.sin_port);
    } else if (address.ss_family == AF_INET6) {
        const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
        inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
        port = ntohs(v6.sin6_port);
    } else {
        return "";
    }
    return std::string("[").append(text).append("]:").append(std::to_string(port));
}

// Bytes of one address in the table that the ranks exchange. The width is fixed, because all-gather
// needs equal sizes. The longest IPv6 address with port needs 53 characters and a zero.
constexpr std::size_t kTextWidth = 56;

// Of the messages before the first call.
constexpr GlooCalls::Channel kConnecting = 0;

}  // namespace

// Gloo's exceptions have no code, so their text has to tell what happened.
Error error_of_gloo(const std::exception& exception) {
    if (auto* ours = dynamic_cast<const StoreFailure*>(&exception)) return ours->error;
    std::string text = exception.what();
    // Gloo begins with the place in its own source, "[file:line] ", which tells our reader nothing.
    if (text.starts_with("[")) {
        auto end = text.find("] ");
        if (end != std::string::npos) text.erase(0, end + 2);
    }
    std::replace(text.begin(), text.end(), '\n', ' ');
    // Without the first letter, which Gloo writes in upper or lower case.
    if (text.find("imed out") != std::string::npos) return Error(ErrorCode::timed_out, text);
    if (text.find("onnection") != std::string::npos) return Error(ErrorCode::closed, text);
    return Error(ErrorCode::unavailable, text);
}

namespace {

// Gloo's device: the thread that serves all connections, at one address of this node.
Result<std::shared_ptr<::gloo::transport::Device>> make_device(const Context& context) {
    ::gloo::transport::tcp::attr where;
    // PyTorch reads this variable too. It is for hosts with several networks.
    if (const char* interface = std::getenv("GLOO_SOCKET_IFNAME")) {
        where.iface = interface;
    } else {
        auto address = local_address(context);
        if (!address) return address.error();
        where.hostname = *address;
    }
    try {
        return ::gloo::transport::tcp::CreateDevice(where);
    } catch (const std::exception& problem) {
        return error_of_gloo(problem);
    }
}

}  // namespace

Result<std::unique_ptr<GlooMesh>> GlooMesh::connect(const Context& context, Store& store,
                                                    Clock::time_point deadline,
                                                    std::chrono::milliseconds timeout,
                                                    bool shares_memory) {
    std::unique_ptr<GlooMesh> mesh(new GlooMesh());
    // Gloo writes to sockets without MSG_NOSIGNAL, so a dead peer would end this process by
    // SIGPIPE. The device's thread is made below and inherits the blocked signal.
    const NoPipeSignal guard;
    GlooMeeting meeting(context, store, deadline, timeout);
    if (auto begun = meeting.begin(); !begun) return begun.error();
    try {
        auto device = make_device(context);
        if (!device) return meeting.failure(device.error(), GlooMeeting::Cause::here);
        // Gloo does not hand out its descriptors. They are among those that are new after
        // connecting.
        const auto before = connected_sockets();
        mesh->context_ = meeting.connect(*device);
        mesh->calls_ = std::make_unique<GlooCalls>(mesh->context_);
        meeting.on_end([calls = mesh->calls_.get()] { calls->abort(); });
        mesh->find_links(before);
        mesh->calls_->share_memory(shares_memory, kConnecting);
        mesh->goodbyes_ = meeting.close();
        if (auto done = mesh->watch(); !done) return done.error();
    } catch (const std::exception& problem) {
        return meeting.failure(error_of_gloo(problem), GlooMeeting::Cause::elsewhere);
    }
    return mesh;
}

// All connected internet sockets of this process.
std::vector<GlooMesh::Link> GlooMesh::connected_sockets() {
    std::vector<Link> found;
    DIR* folder = opendir("/proc/self/fd");
    if (!folder) return found;
    while (dirent* entry = readdir(folder)) {
        const int fd = std::atoi(entry->d_name);
        sockaddr_storage local{}, peer{};
        socklen_t local_size = sizeof local, peer_size = sizeof peer;
        if (entry->d_name[0] == '.') continue;
        // A descriptor that is no socket fails here, a listening socket at getpeername.
        if (getsockname(fd, reinterpret_cast<sockaddr*>(&local), &local_size)) continue;
        if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size)) continue;
        Link link{fd, text_of(local), text_of(peer)};
        if (!link.peer.empty()) found.push_back(std::move(link));
    }
    closedir(folder);
    return found;
}

// Finds the rank behind each new socket. The ranks exchange a table of the near ends of their
// sockets. If another rank lists the far end of a socket of ours as its near end, the socket leads
// to that rank. A socket that another thread opened meanwhile finds no partner in the table.
void GlooMesh::find_links(const std::vector<Link>& before) {
    const int size = context_->size;
    std::vector<Link> candidates;
    for (auto& link : connected_sockets()) {
        auto same = [&](const Link& old) {
            return old.local == link.local && old.peer == link.peer;
        };
        if (std::none_of(before.begin(), before.end(), same)) candidates.push_back(link);
    }
    // One row for the listening address, one for each other rank, and some for sockets of other
    // threads.
    const std::size_t rows = static_cast<std::size_t>(size) + 8;
    const std::size_t bytes = rows * kTextWidth;
    std::vector<char> mine(bytes), table(bytes * size);
    // The first row is the address at which this rank listens. Gloo's messages call a rank by it.
    const int other = context_->rank == 0 ? 1 : 0;
    context_->getPair(other)->address().str().copy(mine.data(), kTextWidth - 1);
    for (std::size_t i = 1; i < std::min(rows, candidates.size() + 1); ++i) {
        candidates[i - 1].local.copy(&mine[i * kTextWidth], kTextWidth - 1);
    }
    calls_->all_gather(mine.data(), table.data(), mine.size(), kConnecting);
    for (int rank = 0; rank < size; ++rank)
        names_[&table[static_cast<std::size_t>(rank) * rows * kTextWidth]] = rank;
    for (auto& link : candidates) {
        for (std::size_t row = 0; row < rows * size; ++row) {
            const int owner = static_cast<int>(row / rows);
            if (owner != context_->rank && link.peer == &table[row * kTextWidth]) link.rank = owner;
        }
        if (link.rank < 0) continue;
        names_[link.peer] = link.rank;
        // Gloo closes its descriptor when a connection fails, and the number may then belong to
        // another file. A duplicate stays valid.
        link.fd = fcntl(link.fd, F_DUPFD_CLOEXEC, 0);
        if (link.fd >= 0) links_.push_back(link);
    }
}

// cut_ is set first: it tells the watcher that the sockets close by our own doing. shutdown() and
// not close(): it takes effect on the connection itself, so Gloo's descriptor and the other rank
// see it.
void GlooMesh::cut() {
    cut_ = true;
    calls_->abort();
    for (const auto& link : links_) ::shutdown(link.fd, SHUT_RDWR);
}

namespace {
constexpr char kGoodbye[] = "gloo/goodbye/";
constexpr char kLosses[] = "gloo/losses";
constexpr char kFirstLost[] = "gloo/first_lost";
constexpr int kLookAgain = 1000;  // milliseconds
}  // namespace

// A counter and not a value: the store answers add(), and the answer proves that it has the
// goodbye. It does not answer set().
void GlooMesh::leave(Store& store) const {
    if (!cut_) (void)store.add(kGoodbye + std::to_string(context_->rank), 1);
}

// The connection to the store was made before it is needed. A lost rank may have taken the store
// with it. A new connection would then be tried for half a minute, and the end of this process
// would wait for it.
Result<void> GlooMesh::watch() {
    auto wake = WakePipe::make("the group's watcher");
    if (!wake) return wake.error();
    wake_ = std::move(*wake);
    auto watcher = start_thread("the group's watcher", [this] { serve(); });
    if (!watcher) return watcher.error();
    watcher_ = std::move(*watcher);
    return {};
}

void GlooMesh::look_by(Look look) {
    std::lock_guard lock(look_mutex_);
    look_ = std::move(look);
}

// The watcher's thread: ends on wake_, on cut(), and after the first loss.
void GlooMesh::serve() {
    // POLLRDHUP alone: the data on these sockets are Gloo's.
    std::vector<pollfd> ends{{wake_.fd(), POLLIN, 0}};
    for (const auto& link : links_) ends.push_back({link.fd, POLLRDHUP, 0});
    while (!cut_) {
        const int changed = poll(ends.data(), ends.size(), kLookAgain);
        if (changed < 0 && errno != EINTR) return;
        if (ends[0].revents || cut_) return;
        if (changed == 0) {
            std::lock_guard lock(look_mutex_);
            if (look_) look_(*goodbyes_);
        }
        for (std::size_t i = 1; i < ends.size(); ++i) {
            if (!ends[i].revents) continue;
            const int rank = links_[i - 1].rank;
            if (!said_goodbye(rank)) {
                // If cut_ is set, this rank closed the sockets itself, and nobody was lost.
                if (!cut_) say_lost(rank);
                return cut();
            }
            // An orderly goodbye. poll() ignores a negative descriptor.
            ends[i].fd = -1;
        }
    }
}

// If the store does not answer, nothing is proved, and the loss is not reported. Then only the
// ranks that wait for that rank notice.
bool GlooMesh::said_goodbye(int rank) {
    auto count = goodbyes_->add(kGoodbye + std::to_string(rank), 0);
    return !count || *count > 0;
}

bool GlooMesh::has_left(Store& store, int rank) const {
    const auto count = store.add(kGoodbye + std::to_string(rank), 0);
    return count && *count > 0;
}

// Runs before the cut. Each rank that cuts its group looks lost to the others, so only the first
// report names the rank that was really lost. The counter makes sure that there is only one.
void GlooMesh::say_lost(int rank) {
    auto count = goodbyes_->add(kLosses, 1);
    if (!count || *count != 1) return;
    (void)goodbyes_->set(kFirstLost, std::to_string(rank));
    (void)goodbyes_->add(kLosses, 0);  // the answer proves that the name is there
}

int GlooMesh::first_lost(Store& store) const {
    auto rank = store.get(kFirstLost, std::chrono::milliseconds(300));
    return rank ? std::atoi(rank->c_str()) : -1;
}

// The watcher ends first: it uses all other members.
GlooMesh::~GlooMesh() {
    if (watcher_.joinable()) {
        wake_.wake();
        watcher_.join();
    }
    calls_.reset();
    // Closes Gloo's descriptors. The connections end with our duplicates, below.
    context_.reset();
    for (const auto& link : links_) ::close(link.fd);
}

int GlooMesh::rank_in(const std::string& message) const {
    for (const auto& name : names_) {
        auto at = message.find(name.first);
        if (at == std::string::npos) continue;
        // The port must end here: "[10.0.0.7]:471" is also the beginning of "[10.0.0.7]:4711".
        const char next = message[std::min(at + name.first.size(), message.size() - 1)];
        if (next < '0' || next > '9' || at + name.first.size() == message.size())
            return name.second;
    }
    return -1;
}

}  // namespace ddprun::trainer

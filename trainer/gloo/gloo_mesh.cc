#include "trainer/gloo/gloo_mesh.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/transport/tcp/device.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/system/no_pipe_signal.h"
#include "trainer/worker/local_address.h"

namespace ddprun::trainer {
namespace {

// Carries our error through Gloo's code, which knows exceptions only.
struct StoreFailure : std::runtime_error {
    explicit StoreFailure(Error e) : std::runtime_error(e.sentence()), error(std::move(e)) {}
    Error error;
};

// Our store as Gloo wants it, with one deadline for the whole meeting.
class GlooStore : public ::gloo::rendezvous::Store {
  public:
    GlooStore(trainer::Store& store, std::chrono::milliseconds timeout)
        : store_(store), deadline_(std::chrono::steady_clock::now() + timeout), timeout_(timeout) {}

    void set(const std::string& key, const std::vector<char>& data) override {
        auto done = store_.set(kPrefix + key, std::string(data.begin(), data.end()));
        if (!done) throw StoreFailure(done.error());
    }

    std::vector<char> get(const std::string& key) override {
        auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            deadline_ - std::chrono::steady_clock::now());
        auto value = store_.get(kPrefix + key, std::max(left, std::chrono::milliseconds(1)));
        if (!value) throw StoreFailure(explain(key, value.error()));
        return {value->begin(), value->end()};
    }

    void wait(const std::vector<std::string>& keys) override {
        for (const auto& key : keys) (void)get(key);
    }
    void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) override {
        wait(keys);
    }

  private:
    static constexpr char kPrefix[] = "gloo/";

    // Gloo's keys end with the rank whose addresses they hold: that is who is missing.
    Error explain(const std::string& key, const Error& error) const {
        if (error.code() != ErrorCode::timed_out) return error;
        const auto digits = key.find_last_not_of("0123456789") + 1;
        return Error(ErrorCode::timed_out,
                     "rank " + key.substr(digits) + " did not come to the process group within " +
                         std::to_string(timeout_.count()) + " ms; see its log");
    }

    trainer::Store& store_;
    const std::chrono::steady_clock::time_point deadline_;
    const std::chrono::milliseconds timeout_;
};

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

// A row of the table that tells the ranks each other's sockets: fixed width, so that all-gather can
// carry it.
constexpr std::size_t kTextWidth = 56;

}  // namespace

Error error_of_gloo(const std::exception& exception) {
    if (auto* ours = dynamic_cast<const StoreFailure*>(&exception)) return ours->error;
    std::string text = exception.what();
    // Gloo begins with the place in its own source, which tells our reader nothing.
    if (text.starts_with("[")) {
        auto end = text.find("] ");
        if (end != std::string::npos) text.erase(0, end + 2);
    }
    std::replace(text.begin(), text.end(), '\n', ' ');
    if (text.find("imed out") != std::string::npos) return Error(ErrorCode::timed_out, text);
    if (text.find("onnection") != std::string::npos) return Error(ErrorCode::closed, text);
    return Error(ErrorCode::unavailable, text);
}

Result<std::unique_ptr<GlooMesh>> GlooMesh::connect(const Context& context, Store& store,
                                                    std::chrono::milliseconds timeout) {
    std::unique_ptr<GlooMesh> mesh(new GlooMesh());
    const NoPipeSignal guard;  // also for the device's thread, which is made below and inherits it
    try {
        ::gloo::transport::tcp::attr where;
        if (const char* interface = std::getenv("GLOO_SOCKET_IFNAME")) {
            where.iface = interface;
        } else {
            auto address = local_address(context);
            if (!address) return address.error();
            where.hostname = *address;
        }
        auto device = ::gloo::transport::tcp::CreateDevice(where);
        GlooStore keys(store, timeout);
        auto made =
            std::make_shared<::gloo::rendezvous::Context>(context.rank.value, context.world_size);
        made->setTimeout(timeout);
        const auto before = connected_sockets();
        made->connectFullMesh(keys, device);
        mesh->context_ = made;
        mesh->calls_ = std::make_unique<GlooCalls>(made);
        mesh->find_links(before);
        if (auto done = mesh->watch(store); !done) return done.error();
    } catch (const std::exception& problem) {
        const Error error = error_of_gloo(problem);
        return Error(error.code(), "rank " + std::to_string(context.rank.value) + " of " +
                                       std::to_string(context.world_size) +
                                       " cannot connect: " + error.sentence());
    }
    return mesh;
}

std::vector<GlooMesh::Link> GlooMesh::connected_sockets() {
    std::vector<Link> found;
    DIR* folder = opendir("/proc/self/fd");
    if (!folder) return found;
    while (dirent* entry = readdir(folder)) {
        const int fd = std::atoi(entry->d_name);
        sockaddr_storage local{}, peer{};
        socklen_t local_size = sizeof local, peer_size = sizeof peer;
        if (entry->d_name[0] == '.') continue;
        if (getsockname(fd, reinterpret_cast<sockaddr*>(&local), &local_size)) continue;
        if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size)) continue;
        Link link{fd, text_of(local), text_of(peer)};
        if (!link.peer.empty()) found.push_back(std::move(link));
    }
    closedir(folder);
    return found;
}

// New sockets are candidates; those whose far end another rank lists as its near end are ours, and
// that rank's. (Another thread may have opened sockets meanwhile: they find no partner in the
// table.)
void GlooMesh::find_links(const std::vector<Link>& before) {
    const int size = context_->size;
    std::vector<Link> candidates;
    for (auto& link : connected_sockets()) {
        auto same = [&](const Link& old) {
            return old.local == link.local && old.peer == link.peer;
        };
        if (std::none_of(before.begin(), before.end(), same)) candidates.push_back(link);
    }
    const std::size_t rows = static_cast<std::size_t>(size) + 8;
    const std::size_t bytes = rows * kTextWidth;
    std::vector<char> mine(bytes), table(bytes * size);
    // The first row is where this rank listens, by which Gloo calls it in its messages.
    const int other = context_->rank == 0 ? 1 : 0;
    context_->getPair(other)->address().str().copy(mine.data(), kTextWidth - 1);
    for (std::size_t i = 1; i < std::min(rows, candidates.size() + 1); ++i) {
        candidates[i - 1].local.copy(&mine[i * kTextWidth], kTextWidth - 1);
    }
    calls_->all_gather(mine.data(), table.data(), mine.size(), 0);
    for (int rank = 0; rank < size; ++rank)
        names_[&table[static_cast<std::size_t>(rank) * rows * kTextWidth]] = rank;
    for (auto& link : candidates) {
        for (std::size_t row = 0; row < rows * size; ++row) {
            const int owner = static_cast<int>(row / rows);
            if (owner != context_->rank && link.peer == &table[row * kTextWidth]) link.rank = owner;
        }
        if (link.rank < 0) continue;
        names_[link.peer] = link.rank;
        // Gloo closes its own when a connection fails, and the number may then be another's.
        link.fd = fcntl(link.fd, F_DUPFD_CLOEXEC, 0);
        if (link.fd >= 0) links_.push_back(link);
    }
}

void GlooMesh::cut() {
    cut_ = true;
    calls_->abort();
    for (const auto& link : links_) ::shutdown(link.fd, SHUT_RDWR);
}

namespace {
constexpr char kGoodbye[] = "gloo/goodbye/";
constexpr char kLosses[] = "gloo/losses";
constexpr char kFirstLost[] = "gloo/first_lost";
}  // namespace

// A counter, because its answer says that the store has it: a set() has none.
void GlooMesh::leave(Store& store) const {
    if (!cut_) (void)store.add(kGoodbye + std::to_string(context_->rank), 1);
}

Result<void> GlooMesh::watch(const Store& store) {
    // Now, not when it is needed: who is lost may have taken the store along, and then a new
    // connection would be tried for half a minute, the process's own end meanwhile waiting.
    auto made = store.another("");
    if (!made) return made.error();
    goodbyes_ = std::move(*made);
    wake_ = eventfd(0, EFD_CLOEXEC);
    if (wake_ < 0) return Error(ErrorCode::unavailable, "no eventfd for the group's watcher");
    watcher_ = std::thread([this] { serve(); });
    return {};
}

void GlooMesh::serve() {
    std::vector<pollfd> ends{{wake_, POLLIN, 0}};
    for (const auto& link : links_) ends.push_back({link.fd, POLLRDHUP, 0});
    while (!cut_) {
        if (poll(ends.data(), ends.size(), -1) < 0 && errno != EINTR) return;
        if (ends[0].revents || cut_) return;
        for (std::size_t i = 1; i < ends.size(); ++i) {
            if (!ends[i].revents) continue;
            const int rank = links_[i - 1].rank;
            if (!said_goodbye(rank)) {
                // cut_ means that the closed end is our own doing, and nobody was lost.
                if (!cut_) say_lost(rank);
                return cut();
            }
            ends[i].fd = -1;
        }
    }
}

// A store that cannot be reached proves nothing: then only those notice who wait for that rank.
bool GlooMesh::said_goodbye(int rank) {
    auto count = goodbyes_->add(kGoodbye + std::to_string(rank), 0);
    return !count || *count > 0;
}

// Before the cut: each rank that cuts its group looks lost to the others, and only the first tells
// who really was.
void GlooMesh::say_lost(int rank) {
    auto count = goodbyes_->add(kLosses, 1);
    if (!count || *count != 1) return;
    (void)goodbyes_->set(kFirstLost, std::to_string(rank));
    (void)goodbyes_->add(kLosses, 0);  // answered, so the name is there now
}

int GlooMesh::first_lost(Store& store) const {
    auto rank = store.get(kFirstLost, std::chrono::milliseconds(300));
    return rank ? std::atoi(rank->c_str()) : -1;
}

GlooMesh::~GlooMesh() {
    if (watcher_.joinable()) {
        const std::uint64_t one = 1;
        (void)!::write(wake_, &one, sizeof one);
        watcher_.join();
    }
    calls_.reset();
    context_.reset();  // closes Gloo's own descriptors; the connections end with ours
    for (const auto& link : links_) ::close(link.fd);
    if (wake_ >= 0) ::close(wake_);
}

int GlooMesh::rank_in(const std::string& message) const {
    for (const auto& name : names_) {
        auto at = message.find(name.first);
        if (at == std::string::npos) continue;
        const char next = message[std::min(at + name.first.size(), message.size() - 1)];
        if (next < '0' || next > '9' || at + name.first.size() == message.size())
            return name.second;
    }
    return -1;
}

}  // namespace ddprun::trainer

// Connections of the worker store: how many there may be, how replies are sent, what is reported.
#include "store/server/server.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/system/boot_clock.h"
#include "store/door/held_back_end.h"

namespace ddprun::store {
namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr std::size_t kReadBuffer = 64 << 10;  // small enough to stay in the processor's cache
// The key by which a torch process says that it has arrived. It is TCPStore's own: the keys of
// programs begin with "/".
constexpr std::string_view kArrivalKey = "init/";
// How many sessions that broke a rule are reported in a minute.
constexpr int kEndsToName = 20;
// When the store is full, a connection that has left more than this unread and sends a further
// request is closed, to free memory.
constexpr std::uint64_t kQueuedWhenFull = 64 << 10;

// A quarter of the process's descriptors is kept for its nodes and workers.
std::uint64_t share_of(std::uint64_t descriptors) { return descriptors - descriptors / 4; }

}  // namespace

Server::Server(Acceptors acceptors, ServerOptions options)
    : options_(std::move(options)),
      key_values_(options_.limits),
      read_buffer_(kReadBuffer),
      door_(
          acceptors.front().get_executor(), std::move(options_.who),
          [this](const std::string& sentence) { log(sentence); },
          [this](tcp::socket socket, const tcp::endpoint& peer) {
              admit(std::move(socket), peer);
          }) {
    for (tcp::acceptor& acceptor : acceptors) {
        if (door_.asks_users()) hold_back_end(acceptor.native_handle());
        accept_loops_.emplace_back(
            std::move(acceptor),
            [this](tcp::socket socket, const tcp::endpoint& peer) {
                take(std::move(socket), peer);
            },
            [this](const std::string& why) {
                log("the store cannot take connections now, workers wait: " + why);
            });
    }
    // A sandbox may refuse to tell the limit. Connections are then refused where the kernel does.
    rlimit limit{RLIM_INFINITY, RLIM_INFINITY};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    descriptors_ = limit.rlim_cur;
}

Server::Server(tcp::acceptor acceptor, ServerOptions options)
    : Server(
          [&acceptor] {
              Acceptors one;
              one.push_back(std::move(acceptor));
              return one;
          }(),
          std::move(options)) {}

Server::~Server() { stop(); }

void Server::start() {
    for (AcceptLoop& loop : accept_loops_) loop.start();
}

void Server::adopt(tcp::socket socket) {
    error_code error;
    const tcp::endpoint peer = socket.remote_endpoint(error);
    if (!error) take(std::move(socket), peer);  // else the peer has gone already
}

void Server::stop() {
    for (AcceptLoop& loop : accept_loops_) loop.close();
    door_.close();
    for (const auto& [id, session] : sessions_) session->close();
    sessions_.clear();
}

bool Server::waits_for_time() const {
    return door_.waiting() > 0 || std::any_of(accept_loops_.begin(), accept_loops_.end(),
                                              [](const AcceptLoop& one) { return one.paused(); });
}

void Server::take(tcp::socket socket, const tcp::endpoint& peer) {
    if (has_room(peer)) door_.take(std::move(socket), peer);
}

void Server::admit(tcp::socket socket, const tcp::endpoint& peer) {
    error_code error;
    UniqueFd released(socket.release(error));
    if (!released)
        return log("the store closed the connection of " + name_of(peer) + ": " + error.message());
    ++last_id_.value;
    SessionOwner& owner = *this;
    const auto session = std::make_shared<Session>(last_id_, std::move(released), peer,
                                                   options_.limits, options_.legacy, owner);
    sessions_.emplace(last_id_, session);
    session->start();
}

// Too many connections are reported once, and again only after there was room.
bool Server::has_room(const tcp::endpoint& peer) {
    const std::uint64_t most = options_.limits.max_connections;
    if (taken() < std::min(most, share_of(descriptors_))) {
        full_ = false;
        return true;
    }
    if (!std::exchange(full_, true)) {
        log("the store closed the connection of " + name_of(peer) + ": " + no_place().sentence() +
            "; further ones are not logged until there is room");
    }
    return false;
}

Error Server::no_place() const {
    const std::string which = "it would be number " + std::to_string(taken() + 1);
    const std::uint64_t most = options_.limits.max_connections, share = share_of(descriptors_);
    if (most <= share) return over_limit(which, most, "--store-max-connections");
    return Error(ErrorCode::malformed,
                 which + ", over the limit of " + std::to_string(share) + "; of the " +
                     std::to_string(descriptors_) +
                     " descriptors of this process (ulimit -n) a quarter is kept for nodes and "
                     "workers");
}

// Requests of one session come here in order. Replies may go to other sessions, e.g. to those that
// wait.
bool Server::on_request(Session& session, Request& request) {
    note_contact(session, request);
    if (!takes_replies(session)) return true;
    const bool is_new = !key_values_.is_listing(session.id());
    operations_.store(operations() + (is_new ? 1 : 0), std::memory_order_relaxed);
    const Result<> served = key_values_.handle(session.id(), std::move(request), replies_);
    // Replies that were made before an error must still go out.
    if (!replies_.empty()) queue_replies(&session);
    if (!served) session.end(served.error().sentence());
    return !key_values_.is_listing(session.id());
}

// A process may have several connections: clones of its store, or those of a communication backend.
// So what it says counts more than its connections.
void Server::note_contact(Session& session, const Request& request) {
    const bool first = !std::exchange(session.made_contact, true);
    const bool arrives = request.operation == Operation::add && request.number > 0 &&
                         request.keys.front() == kArrivalKey;
    if (!first && !arrives) return;
    if (first) contacts_.fetch_add(1, std::memory_order_relaxed);
    if (arrives) ++arrivals_;
    if (options_.on_contact) options_.on_contact(processes());
}

// No connection has this number.
void Server::set(std::string key, std::string value) {
    Request request{.operation = Operation::set, .keys = {}, .values = {}};
    request.keys.push_back(std::move(key));
    request.values.push_back(std::move(value));
    (void)key_values_.handle(ConnectionId{0}, std::move(request), replies_);
    queue_replies(nullptr);
    count_waiters();
    for (const auto& session : std::exchange(to_flush_, {})) session->flush();
}

void Server::queue_replies(Session* asker) {
    for (Reply& reply : replies_) {
        // The asking session was checked before its request (takes_replies). All replies to one
        // request go out, however large they are.
        if (asker && reply.to == asker->id()) {
            queue_reply(*asker, reply);
            continue;
        }
        const auto found = sessions_.find(reply.to);
        if (found == sessions_.end()) continue;
        const std::shared_ptr<Session> session = found->second;
        if (takes_replies(*session)) queue_reply(*session, reply);
    }
    replies_.clear();
}

void Server::queue_reply(Session& session, Reply& reply) {
    // Sent after all requests of this read are served: one system call for many replies.
    if (session.queued_bytes() == 0) to_flush_.push_back(session.shared_from_this());
    session.queue(std::move(reply));
}

// Closes a session that does not read its replies: such a client could otherwise fill the memory.
bool Server::takes_replies(Session& session) {
    const std::uint64_t queued = session.queued_bytes();
    const bool too_much = queued > options_.limits.max_queued;
    const bool store_full = queued > kQueuedWhenFull && !memory().has_room_for(0);
    if (!too_much && !store_full) return true;
    const std::string who =
        "it does not read its replies; " + std::to_string(queued) + " bytes are waiting";
    session.end((too_much ? over_limit(who, options_.limits.max_queued, "--store-max-queued")
                          : no_room(who, memory()))
                    .sentence());
    return false;
}

void Server::after_requests() {
    count_waiters();
    for (const auto& session : to_flush_) session->flush();
    to_flush_.clear();
    if (timing_.load(std::memory_order_relaxed))
        last_request_.store(boot_now().time_since_epoch().count(), std::memory_order_relaxed);
}

// An empty reason means that the peer has left in good order.
void Server::on_end(Session& session, const std::string& why) {
    if (!why.empty()) log_end(name_of(session.peer()), why);
    key_values_.closed(session.id());
    sessions_.erase(session.id());
    count_waiters();
}

void Server::count_waiters() {
    waiters_.store(static_cast<std::int64_t>(key_values_.num_waits()), std::memory_order_relaxed);
}

// A worker may connect and send nonsense without end.
void Server::log_end(const std::string& peer, const std::string& why) {
    if (boot_now() >= minute_ends_) {
        minute_ends_ = boot_now() + std::chrono::minutes{1};
        ends_in_minute_ = 0;
    }
    if (++ends_in_minute_ > kEndsToName) return;
    log("the store closed the connection of " + peer + ": " + why +
        (ends_in_minute_ == kEndsToName ? "; further ones in this minute are not logged" : ""));
}

bool Server::has_connection_from(const asio::ip::address& address) const {
    const asio::ip::address from = plain_address(address);
    return std::any_of(sessions_.begin(), sessions_.end(), [&](const auto& one) {
        return plain_address(one.second->peer().address()) == from;
    });
}

void Server::log(const std::string& sentence) const {
    if (options_.log) options_.log(sentence);
}

}  // namespace ddprun::store

// Silent callers, the look at their first bytes, and what becomes of them.
#include "daemon/endpoint.h"

#include <poll.h>
#include <sys/socket.h>

#include <boost/asio/steady_timer.hpp>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "base/loop/accept_loop.h"
#include "rendezvous/wire/first_bytes.h"

namespace ddprun::rendezvous {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

// The kernel reports a socket as readable only when this many bytes have come.
using WakeAt = asio::detail::socket_option::integer<SOL_SOCKET, SO_RCVLOWAT>;

constexpr std::size_t kFirstLook = 1024;  // usually the whole first message
// How many logged addresses are remembered. A port scan from more addresses starts the list anew.
constexpr std::size_t kNamed = 1024;

std::string address_text(const tcp::endpoint& endpoint) {
    std::ostringstream text;
    text << endpoint;
    return text.str();
}

// Peeking shows the bytes, but not whether the stream ends behind them.
bool peer_has_ended(int socket) {
    pollfd look{socket, POLLRDHUP, 0};
    return ::poll(&look, 1, 0) > 0;
}

}  // namespace

struct Endpoint::State : std::enable_shared_from_this<Endpoint::State> {
    State(asio::io_context& loop, Acceptor acceptor, Services services, Log log, Patience patience)
        : loop(loop),
          services(std::move(services)),
          log(std::move(log)),
          patience(patience),
          accept_loop(
              std::move(acceptor),
              [this](Socket socket, const tcp::endpoint& peer) {
                  const auto self = shared_from_this();
                  admit(std::move(socket), peer);
              },
              [this](const std::string& why) {
                  this->log({Note::Level::warn, "cannot accept connections: " + why});
              }) {}

    struct Caller {
        Socket socket;
        asio::steady_timer timer;
        tcp::endpoint peer;
        std::size_t expected = 1;  // bytes needed for the next look
    };
    using Number = std::uint64_t;

    void admit(Socket socket, const tcp::endpoint& peer);
    void make_room();
    void wait(Number number);
    void look(Number number, bool woken);
    void needs(Number number, std::size_t bytes, bool woken);
    void out_of_patience(Number number);
    Socket take(Number number);
    void turn_away(Number number, const std::string& sentence);
    void close_all();

    asio::io_context& loop;
    Services services;
    Log log;
    Patience patience;
    std::map<Number, Caller> silent;  // ordered by arrival
    Number last = 0;
    std::set<asio::ip::address> named;
    AcceptLoop accept_loop;
};

// A new caller: it gets a time limit for its whole first message.
void Endpoint::State::admit(Socket socket, const tcp::endpoint& peer) {
    error_code error;
    socket.non_blocking(true, error);
    if (error) return;  // the caller has gone already
    make_room();
    const Number number = ++last;
    Caller& caller =
        silent.emplace(number, Caller{std::move(socket), asio::steady_timer(loop), peer})
            .first->second;
    caller.timer.expires_after(patience.silence);
    caller.timer.async_wait([weak = weak_from_this(), number](error_code aborted) {
        const auto self = weak.lock();
        if (self && !aborted) self->out_of_patience(number);
    });
    look(number, false);
}

// The one that has been silent longest goes: a real client speaks at once.
void Endpoint::State::make_room() {
    if (silent.size() < patience.most_silent) return;
    turn_away(silent.begin()->first, "has been silent longest of " +
                                         std::to_string(patience.most_silent) +
                                         " silent connections (the limit)");
}

// Waits for more bytes of a caller that may be closed meanwhile, so it is looked up by number.
void Endpoint::State::wait(Number number) {
    silent.at(number).socket.async_wait(Socket::wait_read,
                                        [weak = weak_from_this(), number](error_code error) {
                                            const auto self = weak.lock();
                                            if (!self || !self->silent.contains(number)) return;
                                            if (error)
                                                self->silent.erase(number);
                                            else
                                                self->look(number, true);
                                        });
}

// Looks at the first bytes. They stay in the socket, because the service that gets it reads them
// again.
void Endpoint::State::look(Number number, bool woken) {
    Caller& caller = silent.at(number);
    std::string bytes(std::max(caller.expected, kFirstLook), '\0');
    error_code error;
    bytes.resize(caller.socket.receive(asio::buffer(bytes), Socket::message_peek, error));
    if (error == asio::error::would_block) return wait(number);
    if (error) {  // port scans come and go without a word
        silent.erase(number);
        return;
    }
    const auto self = shared_from_this();  // a service may destroy the endpoint
    FirstBytes opening = judge_first_bytes(bytes);
    if (const auto* more = std::get_if<NeedsMore>(&opening))
        needs(number, more->bytes, woken);
    else if (std::holds_alternative<AgentLink>(opening))
        services.agent_link(take(number));
    else if (const auto* stranger = std::get_if<Stranger>(&opening))
        // The sentence tells what the stranger sent, which usually names the program.
        turn_away(number, stranger->sentence);
    else if (services.c10d)
        services.c10d(take(number));
    else
        turn_away(number, "speaks c10d, as torchrun does, which is served with --serve-c10d only");
}

// Waits until the whole first message has come, or the caller has ended. Without SO_RCVLOWAT the
// socket would stay readable, and each look would find the same bytes.
void Endpoint::State::needs(Number number, std::size_t bytes, bool woken) {
    Caller& caller = silent.at(number);
    // Woken although the bytes have not come: the caller must have ended.
    const bool again = woken && caller.expected == bytes;
    if (again && peer_has_ended(caller.socket.native_handle()))
        return turn_away(number, "has ended in the middle of its first message");
    caller.expected = bytes;
    error_code error;
    caller.socket.set_option(WakeAt(static_cast<int>(bytes)), error);
    if (error) return turn_away(number, "cannot be waited for: " + error.message());
    wait(number);
}

void Endpoint::State::out_of_patience(Number number) {
    const auto found = silent.find(number);
    if (found == silent.end()) return;
    // More than one byte is expected only after a first look.
    const bool spoke = found->second.expected > 1;
    if (!spoke && services.c10d && services.has_c10d_from(found->second.peer.address())) {
        error_code error;
        // The pending wait must end before another owner uses the socket.
        found->second.socket.cancel(error);
        return services.c10d(take(number));
    }
    turn_away(number, (spoke ? "has not said its first message in " : "has said nothing for ") +
                          ddprun::to_text(patience.silence));
}

Endpoint::Socket Endpoint::State::take(Number number) {
    const auto found = silent.find(number);
    Socket socket = std::move(found->second.socket);
    // Back to the default, or the next reader would wait for that many bytes as well.
    if (found->second.expected > 1) {
        error_code error;  // if the peer has gone, the next reader sees it
        socket.set_option(WakeAt(1), error);
    }
    silent.erase(found);
    return socket;
}

void Endpoint::State::turn_away(Number number, const std::string& sentence) {
    const tcp::endpoint peer = silent.at(number).peer;
    silent.erase(number);
    // The list is bounded, because addresses come from outside.
    if (named.size() >= kNamed) named.clear();
    if (!named.insert(peer.address()).second) return;
    log({Note::Level::info, "closed the connection of " + address_text(peer) + ", which " +
                                sentence + "; further ones from there are not named"});
}

void Endpoint::State::close_all() {
    accept_loop.close();
    silent.clear();
}

// The public class only holds the state; handlers hold it weakly.
Endpoint::Endpoint(asio::io_context& loop, Acceptor acceptor, Services services, Log log,
                   Patience patience)
    : state_(std::make_shared<State>(loop, std::move(acceptor), std::move(services), std::move(log),
                                     patience)) {}

Endpoint::~Endpoint() { state_->close_all(); }

void Endpoint::start() { state_->accept_loop.start(); }

std::size_t Endpoint::silent() const { return state_->silent.size(); }

}  // namespace ddprun::rendezvous

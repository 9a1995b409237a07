// One line to each member: its client, and the question that is open on it.
#include "agent/node/owner_calls.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/system/boot_clock.h"

namespace ddprun::agent {
namespace {

constexpr Duration kCallWithin = std::chrono::seconds{10};
constexpr Duration kFirstPause = std::chrono::milliseconds{50};
constexpr Duration kLongestPause = std::chrono::seconds{1};
constexpr int kDeadAfter = 4;  // of the patience, one part in so many

rendezvous::SocketEnds ends_of(const store::Ends& ends) {
    return {store::plain_address(ends.first.address()).to_string(), ends.first.port(),
            store::plain_address(ends.second.address()).to_string(), ends.second.port()};
}

// The kernel ends the connection if nothing is confirmed for so long.
void end_if_dead(int socket, Duration after) {
    const auto milliseconds =
        static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(after).count());
    ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof milliseconds);
}

}  // namespace

struct OwnerCalls::Line {
    Line(boost::asio::io_context& loop, rendezvous::Peer peer)
        : peer(std::move(peer)), again(loop) {}

    const rendezvous::Peer peer;
    std::size_t member = 0;  // its place in this generation
    State state = State::idle;
    // One for all calls, since it says each of its sentences once.
    std::unique_ptr<rendezvous::Client> client;
    std::optional<rendezvous::AskOwners> open;
    std::int64_t asked_as = 0;  // the number that the store gave to this question
    Time until{};               // when nobody waits for the answer any more
    Duration pause = kFirstPause;
    boost::asio::steady_timer again;  // ends the pause before the next call
};

OwnerCalls::OwnerCalls(boost::asio::io_context& loop, rendezvous::Hello self,
                       rendezvous::Secrets* secrets, Duration patience, Log log, Answered answered)
    : loop_(loop),
      self_(std::move(self)),
      secrets_(secrets),
      patience_(patience),
      log_(std::move(log)),
      answered_(std::move(answered)) {}

OwnerCalls::~OwnerCalls() { end(); }

void OwnerCalls::end() {
    lines_.clear();  // a client's destructor ends its connection, and no callback comes any more
    asked_.clear();
    early_.clear();
    calling_ = 0;
}

void OwnerCalls::begin(const std::vector<rendezvous::StoreCaller>& members) {
    std::map<rendezvous::NodeId, std::shared_ptr<Line>> before;
    for (const auto& line : std::exchange(lines_, {})) before.emplace(line->peer.node, line);
    asked_.clear();
    early_.clear();
    calling_ = 0;
    std::set<std::vector<std::string>> hosts;
    for (const rendezvous::StoreCaller& member : members) {
        const auto known = before.find(member.peer.node);
        auto line = known != before.end() && known->second->peer == member.peer
                        ? known->second
                        : std::make_shared<Line>(loop_, member.peer);
        line->member = lines_.size();
        line->open.reset();
        calling_ += line->state == State::calling;
        // The first member is on this host.
        if (hosts.insert(member.addresses).second && !lines_.empty()) early_.push_back(line);
        lines_.push_back(std::move(line));
    }
    call_next();
}

void OwnerCalls::call_next() {
    call_next_of(asked_, kCalls);
    call_next_of(early_, kEarlyCalls);
}

void OwnerCalls::call_next_of(Queue& queue, int most) {
    for (; calling_ < most && !queue.empty(); queue.pop_front()) {
        const auto line = queue.front().lock();
        if (line && line->state == State::idle && line->peer.port != 0) call(line);
    }
}

void OwnerCalls::ask(const store::OwnersAsked& question) {
    const auto& line = lines_.at(question.member);
    line->open = rendezvous::AskOwners{++newest_, {}};
    line->asked_as = question.number;
    line->until = boot_now() + patience_;
    for (const store::Ends& ends : question.sockets) line->open->sockets.push_back(ends_of(ends));
    if (line->state == State::up) return line->client->send(*line->open);
    // Else the question follows the answer to the call.
    asked_.push_back(line);
    call_next();
}

void OwnerCalls::call(const std::shared_ptr<Line>& line) {
    line->again.cancel();
    if (!line->client) {
        rendezvous::Client::Callbacks callbacks;
        callbacks.on_up = [](const std::string&) {};
        const auto weak = std::weak_ptr(line);
        callbacks.on_message = [this, weak](const rendezvous::ToNode& message) {
            if (const auto self = weak.lock()) came(self, message);
        };
        callbacks.on_lost = [this, weak](const Error&) {
            if (const auto self = weak.lock()) lost(self);
        };
        line->client = std::make_unique<rendezvous::Client>(loop_, log_, callbacks, secrets_);
    }
    become(*line, State::calling);
    line->client->connect({{line->peer.address, line->peer.port}}, rendezvous::Inquire{self_},
                          boot_now() + kCallWithin, true);
}

// The first message answers the call; any but Standing is a refusal.
void OwnerCalls::came(const std::shared_ptr<Line>& line, const rendezvous::ToNode& message) {
    if (line->state == State::calling) {
        if (!std::holds_alternative<rendezvous::Standing>(message)) {
            line->client->close();
            return lost(line);
        }
        become(*line, State::up);
        line->pause = kFirstPause;
        end_if_dead(line->client->native_handle(), patience_ / kDeadAfter);
        if (line->open) line->client->send(*line->open);
        return call_next();
    }
    const auto* owners = std::get_if<rendezvous::Owners>(&message);
    if (!owners || !line->open || line->open->number != owners->number) return;
    line->open.reset();
    answered_({line->member, line->asked_as, owners->owners});
}

void OwnerCalls::lost(const std::shared_ptr<Line>& line) {
    become(*line, State::idle);
    call_next();
    if (line->open && boot_now() >= line->until) line->open.reset();
    if (!line->open) return;
    line->again.expires_after(line->pause);
    line->pause = std::min(2 * line->pause, kLongestPause);
    line->again.async_wait(
        [this, weak = std::weak_ptr(line)](const boost::system::error_code& aborted) {
            const auto self = weak.lock();
            if (aborted || !self || !self->open) return;
            asked_.push_back(self);
            call_next();
        });
}

void OwnerCalls::become(Line& line, State state) {
    calling_ += (state == State::calling) - (line.state == State::calling);
    line.state = state;
}

}  // namespace ddprun::agent

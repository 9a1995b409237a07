// Addresses, users of this host, and the members' words about those of others.
#include "rendezvous/store/door.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "base/system/boot_clock.h"

namespace ddprun::store {
namespace asio = boost::asio;
using boost::system::error_code;

namespace {

// How many refused addresses, and users, are remembered and reported. A port scan from more
// addresses is not worth more lines.
constexpr std::size_t kRefusedToName = 256;
// The timer's clock and the boot clock may differ a little.
constexpr Duration kLeastWait = std::chrono::milliseconds{1};

// IPv4 as IPv6, as Network keeps it.
AddressBytes bytes_of(const asio::ip::address& address) {
    return address.is_v6()
               ? address.to_v6().to_bytes()
               : asio::ip::make_address_v6(asio::ip::v4_mapped, address.to_v4()).to_bytes();
}

void make_plain(std::set<asio::ip::address>& addresses) {
    std::set<asio::ip::address> plain;
    for (const auto& address : addresses) plain.insert(plain_address(address));
    addresses = std::move(plain);
}

// Whether neither side has ended the connection. What a peer has sent before its end could still be
// read.
bool is_connected(asio::ip::tcp::socket& socket) {
    tcp_info info{};
    socklen_t size = sizeof info;
    return ::getsockopt(socket.native_handle(), IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
           info.tcpi_state == TCP_ESTABLISHED;
}

}  // namespace

std::string name_of(const asio::ip::tcp::endpoint& peer) {
    const asio::ip::address address = plain_address(peer.address());
    const std::string name = address.to_string();
    return (address.is_v6() ? '[' + name + ']' : name) + ':' + std::to_string(peer.port());
}

Door::Door(const asio::any_io_executor& loop, WhoMayEnter who, Log log, Admit admit)
    : who_(std::move(who)),
      log_(std::move(log)),
      admit_(std::move(admit)),
      questions_(who_.members.size(), who_.patience),
      timer_(loop) {
    if (who_.allowed) make_plain(*who_.allowed);
    for (std::size_t i = 0; who_.ask && i < who_.members.size(); ++i) {
        if (!who_.members[i].can_be_asked) continue;
        make_plain(who_.members[i].addresses);
        for (const auto& one : who_.members[i].addresses) members_at_[one].push_back(i);
    }
    if (who_.user) users_.emplace();
}

void Door::take(tcp::socket socket, const tcp::endpoint& peer) {
    if (!who_.allowed) return admit_(std::move(socket), peer);
    const asio::ip::address address = plain_address(peer.address());
    const AddressBytes bytes = bytes_of(address);
    for (const Network& network : who_.also_allowed)
        if (network.contains(bytes)) return admit_(std::move(socket), peer);
    if (!who_.allowed->contains(address)) {
        if (refused_.size() < kRefusedToName && refused_.insert(address).second)
            log_("the store refused a connection from " + address.to_string() +
                 ", which is no address of a member of this generation; further ones from there "
                 "are not logged; --store-allow admits more");
        return;
    }
    error_code error;
    const tcp::endpoint ours = socket.local_endpoint(error);
    if (error) return;  // it has gone already
    if (!users_) return admit_(std::move(socket), peer);
    // An address says little within this host, where other users have it, too.
    if (users_->is_here(address)) {
        if (is_of_user(peer, ours)) admit_(std::move(socket), peer);
        return;
    }
    const auto members = members_at_.find(address);
    if (members == members_at_.end()) return admit_(std::move(socket), peer);
    hold(std::move(socket), peer, ours, members->second);
}

bool Door::is_of_user(const tcp::endpoint& peer, const tcp::endpoint& ours) {
    const SocketUsers::Owner owner = users_->owner(peer, ours);
    switch (owner.kind) {
        case SocketUsers::Owner::Kind::unknown:
            if (!std::exchange(cannot_ask_, true))
                log_(
                    "the store takes connections of all users of this host: the kernel has neither "
                    "socket diagnostics nor /proc/net/tcp, and does not tell whose they are");
            return true;
        case SocketUsers::Owner::Kind::gone:
        case SocketUsers::Owner::Kind::not_here:
            return false;
        case SocketUsers::Owner::Kind::user:
            break;
    }
    if (owner.uid == *who_.user || owner.uid == 0) return true;
    refuse_user(peer, "this host", owner.uid);
    return false;
}

void Door::refuse_user(const tcp::endpoint& peer, const std::string& host, std::uint32_t user) {
    if (refused_users_.size() >= kRefusedToName || !refused_users_.emplace(host, user).second)
        return;
    log_("the store refused a connection from " + name_of(peer) + " of user " +
         std::to_string(user) + " of " + host + ", which is not the job's user (" +
         std::to_string(*who_.user) +
         " here); further ones of that user are not logged; --store-allow=" +
         plain_address(peer.address()).to_string() + " admits all users");
}

void Door::hold(tcp::socket socket, const tcp::endpoint& peer, const tcp::endpoint& ours,
                std::vector<OwnerQuestions::Member> members) {
    held_.emplace(++newest_, Held{std::move(socket), peer, ours});
    questions_.arrived(boot_now(), newest_, std::move(members));
    perform();
}

void Door::owners_said(const OwnersSaid& said) {
    silent_.erase(said.member);
    // Those whose time is over must not profit from a late answer.
    questions_.tick(boot_now());
    questions_.answered(said.member, said.number, said.owners);
    perform();
}

void Door::perform() {
    for (const OwnerQuestions::Effect& effect : questions_.take())
        std::visit([this](const auto& one) { carry_out(one); }, effect);
    arm();
}

void Door::carry_out(const OwnerQuestions::Ask& ask) {
    OwnersAsked asked{ask.member, ask.number, {}};
    for (const auto connection : ask.connections) {
        const Held& held = held_.at(connection);
        asked.sockets.emplace_back(held.peer, held.ours);
    }
    who_.ask(std::move(asked));
}

void Door::carry_out(const OwnerQuestions::Admit& admit) {
    Held held = std::move(held_.extract(admit.connection).mapped());
    if (!is_connected(held.socket)) return say_ended(held.peer);
    if (admit.not_found_by && not_found_by_.insert(*admit.not_found_by).second)
        log_("the store takes connections from " + plain_address(held.peer.address()).to_string() +
             " by their address, whoever made them: node " +
             who_.members[*admit.not_found_by].name +
             " cannot say whose they are (workers in containers with a network of their own, "
             "translated addresses, a kernel that does not tell)");
    admit_(std::move(held.socket), held.peer);
}

// What it has sent is lost, so somebody may wait for it.
void Door::say_ended(const tcp::endpoint& peer) {
    if (!std::exchange(ended_, true))
        log_("the store did not serve the connection of " + name_of(peer) +
             ", which had ended before its host said whose it was; a client has to wait for an "
             "answer before it ends; further ones are not logged; --store-allow=" +
             plain_address(peer.address()).to_string() + " serves them");
}

void Door::carry_out(const OwnerQuestions::Close& close) {
    using Why = OwnerQuestions::Why;
    const Held held = std::move(held_.extract(close.connection).mapped());
    const std::string& node = who_.members[close.member].name;
    if (close.why == Why::gone) return say_ended(held.peer);
    if (close.why == Why::other_user) return refuse_user(held.peer, "node " + node, close.user);
    if (!silent_.insert(close.member).second) return;
    const std::string address = plain_address(held.peer.address()).to_string();
    log_("the store closed the connection of " + name_of(held.peer) + ": " +
         (close.why == Why::crowd
              ? std::to_string(OwnerQuestions::kMostWaiting) +
                    " connections from there wait until node " + node + " has said whose they are"
              : "node " + node + " has not said within " + to_text(who_.patience) +
                    " whose it is; can its service be reached from here?") +
         "; further ones are not logged until it answers; --store-allow=" + address +
         " admits all users");
}

// The deadline moves with each arrival; the timer is set anew only if it came too late otherwise.
void Door::arm() {
    const Time deadline = questions_.next_deadline();
    if (deadline >= armed_) return;
    armed_ = deadline;
    timer_.expires_after(std::max(deadline - boot_now(), kLeastWait));
    timer_.async_wait([this, alive = std::weak_ptr(alive_)](error_code aborted) {
        if (aborted || !alive.lock()) return;
        armed_ = kNever;
        questions_.tick(boot_now());
        perform();
    });
}

void Door::close() {
    timer_.cancel();
    held_.clear();
}

}  // namespace ddprun::store

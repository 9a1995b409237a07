// Addresses, users of this host, and the members' words about those of others.
#include "store/door/door.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "base/count_text.h"
#include "base/system/boot_clock.h"
#include "store/door/held_back_end.h"

namespace ddprun::store {
namespace asio = boost::asio;
using boost::system::error_code;

namespace {

// How many refused addresses, and users, are remembered and reported. A port scan from more
// addresses is not worth more lines.
constexpr std::size_t kRefusedToName = 256;
// The timer's clock and the boot clock may differ a little.
constexpr Duration kLeastWait = std::chrono::milliseconds{1};
constexpr const char* kWhyFailed = " (no memory or descriptors, or too many connections there)";

// IPv4 as IPv6, as Network keeps it.
AddressBytes bytes_of(const asio::ip::address& address) {
    return address.is_v6()
               ? address.to_v6().to_bytes()
               : asio::ip::make_address_v6(asio::ip::v4_mapped, address.to_v4()).to_bytes();
}

// Whether it has not been aborted. What a peer has sent before could still be read. A peer that has
// only ended its sending half is still there.
bool is_connection(asio::ip::tcp::socket& socket) {
    tcp_info info{};
    socklen_t size = sizeof info;
    return ::getsockopt(socket.native_handle(), IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
           info.tcpi_state != TCP_CLOSE;
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
      admit_([admit = std::move(admit)](tcp::socket socket, const tcp::endpoint& peer) {
          let_end(socket.native_handle());
          admit(std::move(socket), peer);
      }),
      questions_(who_.members.size(), who_.patience),
      timer_(loop) {
    for (std::size_t i = 0; i < who_.members.size(); ++i)
        for (const auto& address : who_.members[i].addresses) {
            auto& there = members_at_[plain_address(address)];
            if (there.empty() || there.back() != i) there.push_back(i);
        }
    if (who_.user) users_.emplace(*who_.user);
}

void Door::take(tcp::socket socket, const tcp::endpoint& peer) {
    if (who_.members.empty()) return admit_(std::move(socket), peer);
    const asio::ip::address address = plain_address(peer.address());
    const AddressBytes bytes = bytes_of(address);
    for (const Network& network : who_.also_allowed)
        if (network.contains(bytes)) return admit_(std::move(socket), peer);
    const auto members = members_at_.find(address);
    if (members == members_at_.end()) {
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
    if (!users_->is_here(address)) return hold(std::move(socket), peer, ours, members->second);
    if (is_of_user(socket, peer, ours)) admit(std::move(socket), peer);
}

// Always after the answer whose it is: else another user's could have been aborted, and its port
// taken by ours, between the two.
void Door::admit(tcp::socket socket, const tcp::endpoint& peer) {
    if (is_connection(socket)) return admit_(std::move(socket), peer);
    say_ended(socket, peer);
}

bool Door::is_of_user(tcp::socket& socket, const tcp::endpoint& peer, const tcp::endpoint& ours) {
    const SocketOwner owner = users_->owner(peer, ours);
    switch (owner.whose) {
        case Whose::ours:
            break;
        case Whose::unknown:
            if (!std::exchange(cannot_ask_, true))
                log_(
                    "the store takes connections of all users of this host: the kernel has neither "
                    "socket diagnostics nor /proc/net/tcp, and does not tell whose they are");
            break;
        case Whose::other:
            refuse_user(peer, "this host", owner.user);
            return false;
        case Whose::gone:
        case Whose::not_here:
            say_ended(socket, peer);
            return false;
        case Whose::failed:
            if (!std::exchange(failed_here_, true))
                log_("the store closed the connection of " + name_of(peer) +
                     ": the kernel of this host could not say whose it is" + kWhyFailed +
                     "; further ones are not logged; --store-allow=" +
                     plain_address(peer.address()).to_string() + " admits all users");
            return false;
    }
    return true;
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
    if (!alive_) return;
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
    if (is_connection(held.socket) && admit.not_found_by &&
        not_found_by_.insert(*admit.not_found_by).second)
        log_("the store takes connections from " + plain_address(held.peer.address()).to_string() +
             " by their address, whoever made them: node " +
             who_.members[*admit.not_found_by].name +
             " cannot say whose they are (workers in containers with a network of their own, "
             "translated addresses, a kernel that does not tell)");
    this->admit(std::move(held.socket), held.peer);
}

// Another process may wait for what is lost. A connection on which nothing came, such as that of a
// port scan, loses nothing.
void Door::say_ended(tcp::socket& socket, const tcp::endpoint& peer) {
    int bytes = 0;
    if (::ioctl(socket.native_handle(), FIONREAD, &bytes) != 0 || bytes <= 0) return;
    const LineLimit::Said line = ended_.say(boot_now());
    if (!line.allowed) return;
    log_("the store did not serve the connection of " + name_of(peer) +
         ", which had ended before its host said whose it was: the " + count_text(bytes, "byte") +
         " that it had sent are lost" +
         (line.unsaid > 0 ? " (and those of " + count_text(line.unsaid, "connection") +
                                " before it that are not logged)"
                          : "") +
         "; a client has to wait for an answer before it ends; --store-allow=" +
         plain_address(peer.address()).to_string() + " serves it");
}

void Door::carry_out(const OwnerQuestions::Close& close) {
    using Why = OwnerQuestions::Why;
    Held held = std::move(held_.extract(close.connection).mapped());
    const std::string& node = who_.members[close.member].name;
    if (close.why == Why::gone) return say_ended(held.socket, held.peer);
    if (close.why == Why::other_user) return refuse_user(held.peer, "node " + node, close.user);
    if (!closed_for_.emplace(close.member, close.why).second) return;
    std::string why = "node " + node + " has not said within " + to_text(who_.patience) +
                      " whose it is; can its service be reached from here?";
    if (close.why == Why::crowd)
        why = std::to_string(OwnerQuestions::kMostWaiting) +
              " connections from there wait until node " + node + " has said whose they are";
    if (close.why == Why::failed)
        why = "the kernel of node " + node + " could not say whose it is" + kWhyFailed;
    log_("the store closed the connection of " + name_of(held.peer) + ": " + why +
         "; further ones are not logged; --store-allow=" +
         plain_address(held.peer.address()).to_string() + " admits all users");
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
    alive_.reset();
    timer_.cancel();
    held_.clear();
}

}  // namespace ddprun::store

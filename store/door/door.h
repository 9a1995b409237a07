// The store's door: who may enter. An address is a first sieve; where the kernel of a host tells
// whose a connection is, it is asked.
//
//   connection ─▶ in --store-allow? ────────────────────────────────────▶ admitted
//              ─▶ no address of a member? ──────────────────────────────▶ closed
//              ─▶ of this host: our kernel says whose it is (socket_user.h)
//              ─▶ of another host: held unread, a member there is asked (owner_questions.h)
//                 and then: is it still a connection? ──────────────────▶ admitted or closed
//
// A connection that has been aborted when the answer comes is closed: its port may have a new
// owner, and the answer may be about that one. While our end is there, nobody else can connect from
// the same port. One that its client has ended in order is held back (held_back_end.h), so that
// what it has sent counts where its kernel still knows whose it was.
//
// What is said, once each: refused addresses and users, and for each member that it does not
// answer, cannot answer, has too many connections, or does not find those of its own host. Each
// connection of which bytes are lost is said, up to ten in ten seconds. Thread: the store's.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/line_limit.h"
#include "base/time.h"
#include "store/door/network.h"
#include "store/door/owner_questions.h"
#include "store/door/plain_address.h"
#include "store/door/socket_user.h"

namespace ddprun::store {

// A question to the members on another host, by their places in WhoMayEnter::members.
struct OwnersAsked {
    std::size_t member = 0;
    std::int64_t number = 0;
    std::vector<Ends> sockets;
};
struct OwnersSaid {
    std::size_t member = 0;
    std::int64_t number = 0;
    std::vector<SocketOwner> owners;  // in the order of the sockets
};

struct WhoMayEnter {
    struct Member {
        std::string name;
        std::vector<boost::asio::ip::address> addresses;  // of all its interfaces
    };
    // From whose addresses one may connect. Empty: from anywhere, whoever it is. An IPv4 address
    // that is mapped into IPv6 counts as IPv4, here and where it arrives.
    std::vector<Member> members;
    std::vector<Network> also_allowed;  // besides these, and whoever connects
    // Whose connections count, besides root's. Empty: everybody's.
    std::optional<uid_t> user;
    Duration patience = std::chrono::seconds{5};  // with the members' answers
    // Sends a question; needed with `user`. The answer goes to Server::owners_said(). It is
    // repeated by the other side as long as it is not answered. May be called from within a call to
    // the door.
    std::function<void(OwnersAsked)> ask;
};

class Door {
  public:
    using tcp = boost::asio::ip::tcp;
    using Admit = std::function<void(tcp::socket socket, const tcp::endpoint& peer)>;
    using Log = std::function<void(const std::string&)>;

    // `admit` may be called from within a call to the door.
    Door(const boost::asio::any_io_executor& loop, WhoMayEnter who, Log log, Admit admit);

    void take(tcp::socket socket, const tcp::endpoint& peer);
    void owners_said(const OwnersSaid& said);
    bool asks_users() const { return users_.has_value(); }
    std::size_t waiting() const { return held_.size(); }
    void close();  // closes those that wait; an answer does nothing any more

  private:
    struct Held {
        tcp::socket socket;
        tcp::endpoint peer;
        tcp::endpoint ours;
    };

    bool is_of_user(tcp::socket& socket, const tcp::endpoint& peer, const tcp::endpoint& ours);
    void hold(tcp::socket socket, const tcp::endpoint& peer, const tcp::endpoint& ours,
              std::vector<OwnerQuestions::Member> members);
    void perform();
    void carry_out(const OwnerQuestions::Ask& ask);
    void carry_out(const OwnerQuestions::Admit& admit);
    void carry_out(const OwnerQuestions::Close& close);
    void admit(tcp::socket socket, const tcp::endpoint& peer);
    void say_ended(tcp::socket& socket, const tcp::endpoint& peer);
    void arm();
    void refuse_user(const tcp::endpoint& peer, const std::string& host, std::uint32_t user);

    WhoMayEnter who_;
    Log log_;
    Admit admit_;
    std::optional<SocketUsers> users_;  // if somebody is asked for
    // Who is asked about connections from an address. From others nobody comes in.
    std::map<boost::asio::ip::address, std::vector<OwnerQuestions::Member>> members_at_;
    OwnerQuestions questions_;
    OwnerQuestions::Connection newest_ = 0;
    std::unordered_map<OwnerQuestions::Connection, Held> held_;
    boost::asio::steady_timer timer_;
    Time armed_ = kNever;
    // What has been said already.
    std::set<boost::asio::ip::address> refused_;
    std::set<std::pair<std::string, std::uint32_t>> refused_users_;  // host, user
    std::set<std::pair<OwnerQuestions::Member, OwnerQuestions::Why>> closed_for_;
    std::set<OwnerQuestions::Member> not_found_by_;
    bool cannot_ask_ = false, failed_here_ = false;
    LineLimit ended_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // until close()
};

// "10.0.0.7:" or "[fd00::7]:", for the port to follow.
std::string name_of(const boost::asio::ip::tcp::endpoint& peer);

}  // namespace ddprun::store

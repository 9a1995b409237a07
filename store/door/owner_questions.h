// Whose are the connections from other hosts? Each waits until a member on its host has said it.
// This file decides who is asked what, when, and what becomes of each connection. Pure.
//
//   arrived ─▶ waiting for its first member ──answer──▶ ours: admitted
//                │        ▲                         ├─▶ another user's, gone, or failed: closed
//                │        └── the next member ◀─────┴── not found there, or never told; after the
//                └─ half a lease: closed                last member its address admits it
//
// Several members may have one address: tasks that share a host, or hosts whose containers have the
// same bridge. Then they are asked one after the other.
//
// - A worker connects from host b. b is asked at once, says "ours", and the worker is in: one round
//   trip.
// - 1000 workers connect at the same time. The first is asked for alone, the others meanwhile wait
//   for one question each of 256. Each member answers one question at a time, so it sets the pace.
// - A stranger on b opens 10,000 connections. Those of them that wait at the same time are at most
//   1024, the others are closed at once. Connections from other hosts do not notice.
// - b is frozen, or lies dead. Its connections are closed after half a lease each, and the next
//   ones are asked for in a new question. What it says later about those that were closed is not
//   used: the port may have another owner by then.
// - The answer to an old question is ignored. One with the wrong count lets nobody in.
//
// Connections are known by numbers, members by their places in a list; the caller has both. Owner:
// the door. Thread: the store's.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "base/time.h"
#include "proto/socket_owner.h"

namespace ddprun::store {

class OwnerQuestions {
  public:
    using Connection = std::uint64_t;  // grows with each arrival
    using Member = std::size_t;

    static constexpr std::size_t kBatch = kSocketsAsked;  // connections in one question
    static constexpr std::size_t kMostWaiting = 1024;     // for the same member

    struct Ask {
        Member member = 0;
        std::int64_t number = 0;
        std::vector<Connection> connections;
        bool operator==(const Ask&) const = default;
    };
    struct Admit {
        Connection connection = 0;
        std::optional<Member> not_found_by = {};  // then only its address speaks for it
        bool operator==(const Admit&) const = default;
    };
    enum class Why { other_user, gone, failed, no_answer, crowd };
    struct Close {
        Connection connection = 0;
        Why why = Why::gone;
        Member member = 0;
        std::uint32_t user = 0;
        bool operator==(const Close&) const = default;
    };
    using Effect = std::variant<Ask, Admit, Close>;

    // `patience`: how long a connection waits at most.
    OwnerQuestions(std::size_t members, Duration patience)
        : patience_(patience), members_(members) {}

    // A connection from the address of these members, one at least.
    void arrived(Time now, Connection connection, std::vector<Member> members);
    void answered(Member member, std::int64_t number, const std::vector<SocketOwner>& said);
    void tick(Time now);
    // When tick() has something to do; kNever.
    Time next_deadline() const;
    // What is to be done, in order.
    std::vector<Effect> take() { return std::exchange(effects_, {}); }

  private:
    struct Waiting {
        Time until;
        std::vector<Member> members;
        std::size_t asked = 0;  // index of the one whose turn it is
        Member member() const { return members[asked]; }
    };
    struct Questions {
        std::deque<Connection> queue;  // to be asked; some may be closed meanwhile
        std::optional<Ask> open;       // the one that is to be answered
        std::size_t waiting = 0;       // connections whose turn is at this member
    };
    using Place = std::map<Connection, Waiting>::iterator;

    void ask(Member member);
    void judge(Place place, const SocketOwner& said);
    void end(Place place, Effect how);
    void forget_closed(Member member);

    Duration patience_;
    std::map<Connection, Waiting> waiting_;  // the oldest first, so also by their deadlines
    std::vector<Questions> members_;
    std::int64_t newest_question_ = 0;
    std::vector<Effect> effects_;
};

}  // namespace ddprun::store

// Asks the members on other hosts whose connections to the workers' store are (AskOwners). Each is
// called at its own service, and the connection is kept for all questions, also over generations as
// long as it is the same ddprun. Where the job has a secret, both sides prove it and every frame is
// sealed; else the question goes as it is, like everything in such a job.
//
// A call begins with the generation, before the first worker comes, so that a question costs one
// round trip. Of members with the same addresses, which are tasks of one host, only the first is
// called early. Eight early calls run at the same time: with MUNGE each may need a process. A
// question does not wait for them, so that a few members that hang hold up no other.
//
// If a connection ends, it is made again as long as a question is open, and the question is
// repeated: after 50 ms, then twice as long each time, up to 1 s. Something on the way may have
// forgotten a connection that was silent for days; so one that takes no packet for an eighth of a
// lease has ended. After half a lease nobody waits for the answer (store/door/owner_questions.h),
// and no further call is made for it.
//
// Thread: the loop's. Owner: the node's store. `answered` is called on the loop, never from within
// a call here.
#pragma once

#include <boost/asio/io_context.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "base/log.h"
#include "rendezvous/link/client.h"
#include "rendezvous/model/node_place.h"
#include "store/door/door.h"

namespace ddprun::agent {

class OwnerCalls {
  public:
    using Answered = std::function<void(const store::OwnersSaid&)>;

    static constexpr int kEarlyCalls = 8, kCalls = 64;  // at the same time

    // `self` is the calling node. `secrets`, if given, and `loop` must outlive this object.
    // `patience`: how long an answer is waited for.
    OwnerCalls(boost::asio::io_context& loop, rendezvous::Hello self, rendezvous::Secrets* secrets,
               Duration patience, Log log, Answered answered);
    ~OwnerCalls();

    // A generation of these members, the first of which is this node. Questions of the one before
    // are not answered any more.
    void begin(const std::vector<rendezvous::StoreCaller>& members);
    void ask(const store::OwnersAsked& question);
    void end();  // closes all connections

  private:
    struct Line;
    enum class State { idle, calling, up };  // of a line

    using Queue = std::deque<std::weak_ptr<Line>>;

    void call_next();
    void call_next_of(Queue& queue, int most);
    void call(const std::shared_ptr<Line>& line);
    void came(const std::shared_ptr<Line>& line, const rendezvous::ToNode& message);
    void lost(const std::shared_ptr<Line>& line);
    void become(Line& line, State state);

    boost::asio::io_context& loop_;
    const rendezvous::Hello self_;
    rendezvous::Secrets* const secrets_;
    const Duration patience_;
    const Log log_;
    const Answered answered_;
    std::vector<std::shared_ptr<Line>> lines_;  // by the place of the member
    Queue asked_, early_;                       // still to be called: for a question, or early
    int calling_ = 0;                           // calls that are under way
    // Of a question on its way. Each store counts anew, and an answer may be late by a generation.
    std::int64_t newest_ = 0;
};

}  // namespace ddprun::agent

// One call of a store client as a machine: what to send, where to receive and until when, and in
// the end what the answer is or why there is none.
//
// Pure: both clients (client.h blocking, async_client.h awaitable) are shells around it. The shell
// sends output() whole, then receives into room(), both until deadline(), and says what happened,
// until done().
//
// A call that waits for keys looks first: CHECK and GET travel together, so a key that is there
// costs one round trip (PyTorch's client: two). Only when it is missing WAIT is sent, alone, for
// whatever is sent behind a WAIT would be answered before it, and then it looks again. A server
// that closes at a GET of a missing key (Peer::answers_missing) is asked as PyTorch does: WAIT,
// GET. A wait that takes too long is taken back with CANCEL_WAIT, and the connection goes on; where
// there is no CANCEL_WAIT (1.13 and 2.0) the connection has to be dropped, for the answer may still
// come.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "base/error.h"
#include "rendezvous/store/answer.h"
#include "rendezvous/store/greeting.h"
#include "rendezvous/store/protocol.h"

namespace ddprun::store {

using Deadline = std::chrono::steady_clock::time_point;
using Timeout = std::chrono::milliseconds;

std::string seconds_text(Timeout time);  // "0.05 s"

// What is asked of the store, whatever the server: a request with the keys as users see them.
struct Task {
    Request request;
    // GET, MULTI_GET, QUEUE_POP: wait until all keys are there. WAIT and BARRIER wait anyway.
    bool waits = false;
};

// Reading only: to do it twice changes nothing.
bool is_repeatable(const Task& task);

class Call {
  public:
    // The call has begun `now`, or (made again) before. The timeout bounds how long is waited for
    // other clients; a server that answers gets kAnswerAfterWait to do so, for to give up on it
    // costs the connection.
    Call(Task task, const Peer& peer, Timeout timeout, Deadline now);

    std::string output() { return std::exchange(output_, {}); }
    bool has_output() const { return !output_.empty(); }
    std::span<char> room() { return reader_.room(); }
    Deadline deadline() const { return waiting() ? give_up_at_ : answer_by_; }

    void sent();  // for many operations the end already
    void received(std::size_t count, Deadline now);
    void timed_out(Deadline now);
    void lost(const Error& error);  // the connection

    bool done() const { return stage_ == Stage::done; }
    // The sentences begin with what was called, and do not name the store.
    Result<Answer> result();
    // Whether the connection is still where both sides think it is.
    bool spoiled() const { return spoiled_; }
    // It was only dropped because a wait could not be taken back: nothing is lost.
    bool dropped() const { return dropped_; }

  private:
    enum class Stage { looking, waiting, taking_back, answering, done };

    bool waiting() const { return stage_ == Stage::waiting; }
    bool only_waits() const;
    void refuse();
    void ask(const Request& request);
    void look(Deadline now);
    void wait();
    void advance(Deadline now);
    void on_wait_over(std::int64_t status, Deadline now);
    void on_taken_back(std::int64_t status, Deadline now);
    void finish(Answer answer);
    void fail(ErrorCode code, std::string sentence);
    void spoil(ErrorCode code, std::string sentence);
    std::string subject() const;
    std::string gave_up() const;

    Request request_;  // with the keys as they travel
    bool waits_;
    Peer peer_;
    Timeout timeout_;
    Deadline give_up_at_;
    Deadline answer_by_;
    Stage stage_ = Stage::answering;
    std::string output_;
    AnswerReader reader_;
    bool ended_while_taking_back_ = false;
    bool spoiled_ = false;
    bool dropped_ = false;
    Result<Answer> result_ = Answer{};
};

}  // namespace ddprun::store

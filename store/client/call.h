// One call of a store client as a state machine: what to send, where to receive, until when, and at
// the end the answer or the reason why there is none.
//
// Pure. The client (client.h) is the shell around it. It sends all of output(), then receives into
// room(), both until deadline(), and reports what happened, until done().
//
// A call that waits for keys looks first: it sends CHECK and GET together, so a key that exists
// costs one round trip (PyTorch's own client needs two). If the key is missing, it sends WAIT and
// then looks again. WAIT travels alone, because the server answers a later request before it. Three
// kinds of servers differ:
//
// - Some close the connection at a GET of a missing key (Peer::answers_missing is false). These get
//   WAIT then GET, as from PyTorch's client.
// - From torch 2.1 on, CANCEL_WAIT takes a wait back, and the connection stays usable.
// - torch 1.13 and 2.0 have no CANCEL_WAIT. The connection is dropped then, because the answer may
//   still come.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "base/error.h"
#include "store/client/answer.h"
#include "store/client/greeting.h"
#include "store/protocol/protocol.h"

namespace ddprun::store {

using Deadline = std::chrono::steady_clock::time_point;
// How long one call may take.
using Timeout = std::chrono::milliseconds;

std::string seconds_text(Timeout time);  // "0.05 s"

// What is asked of the store, independent of the server's dialect. Keys are written as users see
// them.
struct Task {
    Request request;
    // GET, MULTI_GET and QUEUE_POP wait until all keys exist. WAIT and BARRIER always wait.
    bool waits = false;
};

// Whether the call only reads, so that doing it twice changes nothing.
bool is_repeatable(const Task& task);

class Call {
  public:
    // `now` is when the call began; a repetition passes the first attempt's begin. `timeout` bounds
    // how long the call waits for other clients. A server that does answer gets kAnswerAfterWait
    // (call.cc) for it, because giving up on it costs the connection.
    Call(Task task, const Peer& peer, Timeout timeout, Deadline now);

    std::string output() { return std::exchange(output_, {}); }  // to be sent now; empties it
    bool has_output() const { return !output_.empty(); }
    std::span<char> room() { return reader_.room(); }
    Deadline deadline() const { return waiting() ? give_up_at_ : answer_by_; }

    void sent();  // all output was sent; operations without an answer end here
    void received(std::size_t count, Deadline now);
    void timed_out(Deadline now);
    void lost(const Error& error);  // the connection was lost

    bool done() const { return stage_ == Stage::done; }
    // The answer or the error. An error names the operation and its keys; the caller adds the
    // store's address.
    Result<Answer> result();
    // The two sides may disagree about where the stream is: the connection must not be used any
    // more.
    bool spoiled() const { return spoiled_; }
    // The connection was dropped only because a wait could not be taken back. Nothing that was
    // written is lost.
    bool dropped() const { return dropped_; }

  private:
    //   looking      CHECK and GET (or QUEUE_POP) are sent
    //   waiting      WAIT or BARRIER is sent
    //   taking_back  CANCEL_WAIT is sent
    //   answering    the request itself is sent
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

    Request request_;  // with the keys as they travel: "/" in front
    bool waits_;       // Task::waits
    Peer peer_;
    Timeout timeout_;
    Deadline give_up_at_;  // for waiting
    Deadline answer_by_;   // for everything else
    Stage stage_ = Stage::answering;
    std::string output_;
    AnswerReader reader_;
    bool ended_while_taking_back_ = false;  // the wait's own answer came after CANCEL_WAIT was sent
    bool spoiled_ = false;
    bool dropped_ = false;
    Result<Answer> result_ = Answer{};
};

}  // namespace ddprun::store

// The stages of one call of a store client.
#include "store/client/call.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace ddprun::store {
namespace {

// For an answer that does not depend on other clients. Giving up costs the connection, so this is
// generous.
constexpr Timeout kAnswerAfterWait{10'000};
constexpr std::size_t kKeysToName = 3;
constexpr std::size_t kKeyBytesToShow = 200;

// The key as its user wrote it, without the "/" in front, and shortened for a log line.
std::string quoted(const std::string& key) { return '\'' + key.substr(1, kKeyBytesToShow) + '\''; }

std::string names(const std::vector<std::string>& keys) {
    std::string text;
    for (std::size_t i = 0; i < std::min(keys.size(), kKeysToName); ++i) {
        if (i > 0) text += ", ";
        text += quoted(keys[i]);
    }
    if (keys.size() > kKeysToName) text += ", …";
    return text;
}

// PyTorch's TCPStore puts "/" in front of every key of a user. So C++ and Python meet under one
// name.
Request with_keys_as_sent(Request request) {
    for (std::string& key : request.keys) key.insert(0, 1, '/');
    return request;
}

// Which servers lack this operation. They close the connection without a word, so this is the
// likely reason.
std::string age_of(Operation operation) {
    switch (operation) {
        case Operation::queue_pop:
        case Operation::queue_len:
            return ", as PyTorch's does before 2.8 and without libuv";
        case Operation::list_keys:
            return ", as PyTorch's does before 2.10";
        case Operation::barrier:
            return ", as PyTorch's does before 2.12";
        default:
            return {};
    }
}

bool is_status(std::int64_t number, Status status) {
    return number == static_cast<std::int64_t>(status);
}

}  // namespace

std::string seconds_text(Timeout time) {
    char text[32];
    std::snprintf(text, sizeof text, "%g s", static_cast<double>(time.count()) / 1000.0);
    return text;
}

bool is_repeatable(const Task& task) {
    switch (task.request.operation) {
        case Operation::get:
        case Operation::multi_get:
        case Operation::check:
        case Operation::wait:
        case Operation::num_keys:
        case Operation::queue_len:
        case Operation::list_keys:
            return true;
        default:
            return false;
    }
}

// Chooses the first stage. QUEUE_POP of an empty queue is always answered, with a length of 0.
Call::Call(Task task, const Peer& peer, Timeout timeout, Deadline now)
    : request_(with_keys_as_sent(std::move(task.request))),
      waits_(task.waits),
      peer_(peer),
      timeout_(timeout),
      give_up_at_(now + timeout),
      answer_by_(give_up_at_) {
    if (!peer_.knows(request_.operation)) {
        refuse();
    } else if (only_waits()) {
        wait();
    } else if (!waits_) {
        ask(request_);
    } else if (peer_.answers_missing || request_.operation == Operation::queue_pop) {
        look(now);
    } else {
        wait();
    }
}

// Refused before anything is sent: the server would close the connection.
void Call::refuse() {
    const bool oldest = peer_.dialect == Dialect::torch_1_13;
    fail(ErrorCode::refused, subject() + ": a store of PyTorch " +
                                 (oldest ? "1.13 or 2.0" : "2.1") +
                                 " does not know this operation");
}

bool Call::only_waits() const {
    return request_.operation == Operation::wait || request_.operation == Operation::barrier;
}

void Call::ask(const Request& request) {
    output_ += encode(request, peer_.dialect);
    reader_.expect(request);
    request_.values = {};  // may be large, and nothing with values is ever sent twice
}

// Both requests travel in one packet, so this is one round trip. QUEUE_POP tells by itself whether
// there was an element.
void Call::look(Deadline now) {
    answer_by_ = std::max(give_up_at_, now + kAnswerAfterWait);
    stage_ = Stage::looking;
    if (request_.operation != Operation::queue_pop) ask({Operation::check, request_.keys, {}, 0});
    ask(request_);
}

void Call::wait() {
    stage_ = Stage::waiting;
    ask(only_waits() ? request_ : Request{Operation::wait, request_.keys, {}, 0});
}

// An operation without an answer ends when it is sent.
void Call::sent() {
    if (stage_ == Stage::answering && reader_.complete()) finish(reader_.take());
}

void Call::received(std::size_t count, Deadline now) {
    if (const Result<> understood = reader_.received(count); !understood)
        return spoil(ErrorCode::malformed, understood.error().sentence());
    // One read may bring several answers, e.g. those to CHECK and GET.
    while (!done() && output_.empty() && reader_.complete()) {
        advance(now);
        (void)reader_.received(0);  // decodes what has been received with it
    }
    // While a wait is taken back, its own answer may come unexpectedly. Anywhere else surplus bytes
    // mean that the two sides disagree about the stream.
    if (!spoiled_ && reader_.surplus() && stage_ != Stage::taking_back)
        spoil(ErrorCode::malformed, "unexpected bytes after the answer");
}

void Call::advance(Deadline now) {
    Answer answer = reader_.take();
    switch (stage_) {
        // If the key has been deleted again in the meantime, the call waits again.
        case Stage::looking: {
            if (request_.operation == Operation::queue_pop)
                return answer.numbers.front() > 0 ? finish(std::move(answer)) : wait();
            const bool there = is_status(answer.numbers.front(), Status::ready);
            answer.numbers.clear();
            return there ? finish(std::move(answer)) : wait();
        }
        case Stage::waiting:
            return on_wait_over(answer.numbers.front(), now);
        case Stage::taking_back:
            return on_taken_back(answer.numbers.front(), now);
        case Stage::answering:
            return finish(std::move(answer));
        case Stage::done:
            return;
    }
}

void Call::on_wait_over(std::int64_t status, Deadline now) {
    // A wait has one possible answer.
    if (!is_status(status, Status::stop_waiting))
        return spoil(ErrorCode::malformed, "answer " + std::to_string(status) + " to a wait");
    if (only_waits()) return finish({});
    answer_by_ = std::max(give_up_at_, now + kAnswerAfterWait);
    if (peer_.answers_missing || request_.operation == Operation::queue_pop) return look(now);
    stage_ = Stage::answering;
    ask(request_);
}

// Our CANCEL_WAIT and the answer to the wait may cross on the wire. Then both answers come: first
// "the keys are there", then "the wait is cancelled". The first one counts, since the keys do
// exist.
void Call::on_taken_back(std::int64_t status, Deadline now) {
    if (is_status(status, Status::stop_waiting) && !ended_while_taking_back_) {
        ended_while_taking_back_ = true;
        return reader_.expect({Operation::cancel_wait, {}, {}, 0});
    }
    if (!is_status(status, Status::wait_canceled)) {
        return spoil(ErrorCode::malformed,
                     "answer " + std::to_string(status) + " to a cancelled wait");
    }
    if (std::exchange(ended_while_taking_back_, false))
        return on_wait_over(static_cast<std::int64_t>(Status::stop_waiting), now);
    fail(ErrorCode::timed_out, gave_up());
}

// Only a wait may end by time and leave the connection usable.
void Call::timed_out(Deadline now) {
    if (stage_ != Stage::waiting) return spoil(ErrorCode::timed_out, "no answer in time");
    if (!peer_.cancels()) {
        dropped_ = true;
        return fail(ErrorCode::timed_out, gave_up());
    }
    // Forget the answer that the wait still owes: if it comes, it is the first of the two bytes in
    // on_taken_back().
    stage_ = Stage::taking_back;
    reader_.take();
    answer_by_ = now + kAnswerAfterWait;
    ask({Operation::cancel_wait, {}, {}, 0});
}

// A server closes the connection at an operation that it does not know, without a word.
void Call::lost(const Error& error) {
    const bool closed = error.code() == ErrorCode::closed;
    spoil(error.code(), error.sentence() + (closed ? age_of(request_.operation) : ""));
}

void Call::finish(Answer answer) {
    stage_ = Stage::done;
    result_ = std::move(answer);
}

void Call::fail(ErrorCode code, std::string sentence) {
    stage_ = Stage::done;
    result_ = Error(code, std::move(sentence));
}

// Ends the call and marks the connection as unusable. The sentence tells the time limit, because a
// limit that is too short is a frequent reason.
void Call::spoil(ErrorCode code, std::string sentence) {
    spoiled_ = true;
    std::string during = waits_ || only_waits() ? " (waiting up to " : " (within ";
    fail(code, subject() + ": " + std::move(sentence) + during + seconds_text(timeout_) + ")");
}

Result<Answer> Call::result() { return std::exchange(result_, Answer{}); }

// "GET of 'a', 'b', 'c', …": names at most three keys.
std::string Call::subject() const {
    std::string text = to_string(request_.operation);
    return request_.keys.empty() ? text : text + " of " + names(request_.keys);
}

// A wait that ended by time, in the words of the operation that waited.
std::string Call::gave_up() const {
    const std::vector<std::string>& keys = request_.keys;
    switch (request_.operation) {
        case Operation::barrier:
            return "barrier " + names(keys) + " was not reached by all " +
                   std::to_string(request_.number) + " within " + seconds_text(timeout_);
        case Operation::queue_pop:
            return "queue " + names(keys) + " stayed empty for " + seconds_text(timeout_);
        default:
            break;
    }
    if (keys.size() == 1)
        return "key " + names(keys) + " was not set within " + seconds_text(timeout_);
    return "not all of " + std::to_string(keys.size()) + " keys (" + names(keys) +
           ") were set within " + seconds_text(timeout_);
}

}  // namespace ddprun::store

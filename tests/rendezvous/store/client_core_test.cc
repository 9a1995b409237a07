// The pure half of the store client: the greeting that finds the dialect, and one call as a script
// of what is sent and what comes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rendezvous/store/client_state.h"
#include "rendezvous/store/tasks.h"

namespace ddprun::store {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Verdict = Greeting::Verdict;

const std::string kOnes(4, '\1');
const std::string kZeros(8, '\0');
const Peer kOurs{Dialect::torch_2_2, true};
const Peer kOlderBackEnd{Dialect::torch_2_2, false};
const Peer kOldest{Dialect::torch_1_13, false};
const Deadline kStart{};

std::string wire(Operation operation, std::vector<std::string> keys = {}) {
    return encode({operation, std::move(keys), {}, 0});
}

std::string text(const std::string& value) {
    std::string bytes;
    put_text(bytes, value);
    return bytes;
}

// What an old server takes for the length of a key is over any address space.
TEST(Greeting, IsHarmlessToOldServers) {
    const std::string opening = Greeting().output();
    const auto* length = reinterpret_cast<const unsigned char*>(opening.data() + 1);
    EXPECT_EQ(opening[0], 0);
    EXPECT_GT(get_little_endian(length, 8), std::uint64_t{1} << 57);
}

TEST(Greeting, KnowsAServerThatAnswersAMissingKey) {
    Greeting greeting;
    EXPECT_EQ(greeting.received(kOnes + kZeros.substr(1)).value(), Verdict::more);
    EXPECT_EQ(greeting.received(std::string(1, '\0')).value(), Verdict::ready);
    EXPECT_EQ(greeting.peer(), kOurs);
}

TEST(Greeting, KnowsThePyTorchBackEndThatCloses) {
    Greeting greeting;
    (void)greeting.output();
    EXPECT_EQ(greeting.received(kOnes).value(), Verdict::more);
    EXPECT_EQ(greeting.ended(), Verdict::reconnect);
    EXPECT_EQ(greeting.output(), wire(Operation::validate) + std::string(4, '\x0c'));
    EXPECT_EQ(greeting.received(kOnes).value(), Verdict::ready);
    EXPECT_EQ(greeting.peer(), kOlderBackEnd);
}

TEST(Greeting, Knows21ByItsCancel) {
    Greeting greeting;
    greeting.ended();
    EXPECT_EQ(greeting.output(), "\x06");
    EXPECT_EQ(greeting.received(kZeros).value(), Verdict::more);
    EXPECT_EQ(greeting.output(), "\x0b");
    EXPECT_EQ(greeting.received("\1").value(), Verdict::ready);
    EXPECT_EQ(greeting.peer().dialect, Dialect::torch_2_1);
}

TEST(Greeting, Knows113ByTheEndAtACancel) {
    Greeting greeting;
    greeting.ended();
    EXPECT_EQ(greeting.received(kZeros).value(), Verdict::more);
    greeting.ended();
    EXPECT_EQ(greeting.output(), "\x06");
    EXPECT_EQ(greeting.received(kZeros).value(), Verdict::ready);
    EXPECT_EQ(greeting.peer(), kOldest);
}

// A connection that was reset, as by an overflowing backlog, tells nothing: it begins anew.
TEST(Greeting, BelievesNoSilence) {
    Greeting greeting;
    greeting.ended();
    EXPECT_TRUE(greeting.impatient());
    greeting.ended();
    EXPECT_EQ(greeting.began_anew(), 1);
    EXPECT_EQ(greeting.output(), Greeting().output());
}

TEST(Greeting, SaysWhatIsNoStore) {
    Greeting greeting;
    EXPECT_EQ(greeting.received("HTTP/1.1 400").error().code(), ErrorCode::malformed);
}

// A call against a scripted server: each step is what the call sends and what then comes.
class CallScript : public testing::Test {
  protected:
    void begin(Task task, const Peer& peer, Timeout timeout = 5s) {
        call_.emplace(std::move(task), peer, timeout, kStart);
    }
    void expect_sent(const std::string& bytes) {
        EXPECT_EQ(call_->output(), bytes);
        call_->sent();
    }
    void comes(const std::string& bytes) {
        for (std::size_t at = 0; at < bytes.size() && !call_->done();) {
            const std::span<char> room = call_->room();
            const std::size_t count = bytes.copy(room.data(), room.size(), at);
            call_->received(count, kStart);
            at += count;
        }
    }
    std::optional<Call> call_;
};

TEST_F(CallScript, GetOfAKeyThatIsThereIsOneRoundTrip) {
    begin(tasks::get("k").task, kOurs);
    expect_sent(wire(Operation::check, {"/k"}) + wire(Operation::get, {"/k"}));
    comes('\0' + text("value"));
    ASSERT_TRUE(call_->done());
    EXPECT_EQ(call_->result().value().texts, std::vector<std::string>{"value"});
}

TEST_F(CallScript, GetWaitsAndLooksAgain) {
    begin(tasks::get("k").task, kOurs);
    (void)call_->output();
    comes('\1' + kZeros);
    expect_sent(wire(Operation::wait, {"/k"}));
    comes(std::string(1, '\0'));
    expect_sent(wire(Operation::check, {"/k"}) + wire(Operation::get, {"/k"}));
    comes('\0' + text(""));
    EXPECT_EQ(call_->result().value().texts, std::vector<std::string>{""});
}

// Its server would close at a GET of a missing key.
TEST_F(CallScript, GetFromTheOlderBackEndWaitsFirst) {
    begin(tasks::get("k").task, kOlderBackEnd);
    expect_sent(wire(Operation::wait, {"/k"}));
    comes(std::string(1, '\0'));
    expect_sent(wire(Operation::get, {"/k"}));
    comes(text("v"));
    EXPECT_EQ(call_->result().value().texts, std::vector<std::string>{"v"});
}

TEST_F(CallScript, AWaitIsTakenBack) {
    begin(tasks::wait({"k"}).task, kOurs, 30ms);
    expect_sent(wire(Operation::wait, {"/k"}));
    EXPECT_EQ(call_->deadline(), kStart + 30ms);
    call_->timed_out(kStart);
    expect_sent(wire(Operation::cancel_wait));
    comes("\1");
    EXPECT_EQ(call_->result().error().sentence(), "key 'k' was not set within 0.03 s");
    EXPECT_FALSE(call_->spoiled());
}

// The end of the wait crosses the cancellation: both bytes come, together or not, and the key is
// there.
TEST_F(CallScript, ACancelThatCameTooLateIsASuccess) {
    for (const bool together : {false, true}) {
        begin(tasks::wait({"k"}).task, kOurs, 30ms);
        (void)call_->output();
        call_->timed_out(kStart);
        (void)call_->output();
        comes(std::string(1, '\0') + (together ? "\1" : ""));
        if (!together) {
            EXPECT_FALSE(call_->done());
            comes("\1");
        }
        EXPECT_TRUE(call_->result());
    }
}

// 1.13 cannot take back: the answer may come at any time, and would be read as another's.
TEST_F(CallScript, WithoutCancelTheConnectionIsDropped) {
    begin(tasks::get("k").task, kOldest, 30ms);
    (void)call_->output();
    call_->timed_out(kStart);
    EXPECT_TRUE(call_->done());
    EXPECT_TRUE(call_->dropped());
    EXPECT_EQ(call_->result().error().code(), ErrorCode::timed_out);
}

TEST_F(CallScript, WhatTheServerDoesNotKnowIsNotSent) {
    begin(tasks::append("log", "a").task, kOldest);
    EXPECT_FALSE(call_->has_output());
    EXPECT_EQ(call_->result().error().sentence(),
              "APPEND of 'log': a store of PyTorch 1.13 or 2.0 does not know this operation");
}

TEST_F(CallScript, AWrongLengthCostsNothing) {
    begin(tasks::compare_set("k", "", "v").task, kOurs);
    (void)call_->output();
    comes(std::string(8, '\x7f'));
    EXPECT_TRUE(call_->spoiled());
    EXPECT_THAT(call_->result().error().sentence(), HasSubstr("over the limit"));
}

TEST_F(CallScript, BytesThatNobodyAskedForAreAnError) {
    begin(tasks::check({"k"}).task, kOurs);
    (void)call_->output();
    comes(std::string(2, '\0'));
    EXPECT_TRUE(call_->spoiled());
}

// A value larger than the buffer, and one that ends with it, arrive whole.
TEST_F(CallScript, ValuesOfAllSizesArrive) {
    for (const std::size_t size : {16366u, 16367u, 16384u, 40000u, 20u << 20}) {
        begin(tasks::get("k").task, kOurs);
        (void)call_->output();
        const std::string value(size, 'x');
        comes('\0' + text(value));
        ASSERT_TRUE(call_->done());
        EXPECT_TRUE(call_->result().value().texts.at(0) == value) << size;
    }
}

// After a loss only reading calls go on, and only when nothing written may be lost with it.
TEST(ClientState, OpensANewConnectionOnlyWhereNothingIsLost) {
    ClientState state("::1", 29500, Dialect::unknown);
    EXPECT_EQ(state.address(), "[::1]:29500");
    const auto lose = [&](Task task) {
        state.connected(kOurs);
        Call call(std::move(task), kOurs, 5s, kStart);
        call.lost(Error(ErrorCode::closed, "gone"));
        state.note(Operation::get, call, call.result());
    };
    lose(tasks::get("k").task);
    EXPECT_FALSE(state.is_connected());
    EXPECT_TRUE(state.may_repeat(tasks::get("k").task));
    EXPECT_FALSE(state.may_connect(tasks::add("n", 1).task));
    EXPECT_FALSE(state.may_connect(tasks::set("k", "v").task));

    state.connected(kOurs);
    Call set(tasks::set("k", "v").task, kOurs, 5s, kStart);
    set.sent();
    state.note(Operation::set, set, set.result());
    Call get(tasks::get("k").task, kOurs, 5s, kStart);
    get.lost(Error(ErrorCode::closed, "gone"));
    state.note(Operation::get, get, get.result());
    EXPECT_FALSE(state.may_connect(tasks::get("k").task));
    EXPECT_THAT(state.refusal().sentence(), HasSubstr("may not have arrived"));
}

}  // namespace
}  // namespace ddprun::store

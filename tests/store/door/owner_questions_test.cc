// Who is asked whose a connection is, and what becomes of it (owner_questions.h). The stories of
// that header, one after the other. Pure.
#include "store/door/owner_questions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace ddprun::store {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using Ask = OwnerQuestions::Ask;
using Admit = OwnerQuestions::Admit;
using Close = OwnerQuestions::Close;
using Why = OwnerQuestions::Why;
using Effects = std::vector<OwnerQuestions::Effect>;

Time at(double seconds) {
    return Time{std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds))};
}

constexpr Duration kPatience = std::chrono::seconds{5};
const SocketOwner kOurs{Whose::ours, 0}, kNotHere{Whose::not_here, 0};

// A connection arrives from the host of these members.
Effects arrives(OwnerQuestions& questions, double now, std::uint64_t connection,
                std::vector<std::size_t> members = {0}) {
    questions.arrived(at(now), connection, std::move(members));
    return questions.take();
}
Effects says(OwnerQuestions& questions, std::size_t member, std::int64_t number,
             const std::vector<SocketOwner>& said) {
    questions.answered(member, number, said);
    return questions.take();
}

TEST(OwnerQuestions, OneRoundTripForAWorker) {
    OwnerQuestions questions(1, kPatience);
    EXPECT_THAT(arrives(questions, 0, 7), ElementsAre(Ask{0, 1, {7}}));
    EXPECT_THAT(says(questions, 0, 1, {kOurs}), ElementsAre(Admit{7}));
    EXPECT_EQ(questions.next_deadline(), kNever);
}

TEST(OwnerQuestions, OtherUsersAndThoseThatAreGoneAreClosed) {
    OwnerQuestions questions(1, kPatience);
    arrives(questions, 0, 1);
    EXPECT_THAT(says(questions, 0, 1, {{Whose::other, 1001}}),
                ElementsAre(Close{1, Why::other_user, 0, 1001}));
    arrives(questions, 0, 2);
    EXPECT_THAT(says(questions, 0, 2, {{Whose::gone, 0}}), ElementsAre(Close{2, Why::gone, 0}));
}

// The kernel there had no memory: that is no reason to trust the address.
TEST(OwnerQuestions, AFailureLetsNobodyIn) {
    OwnerQuestions questions(2, kPatience);
    arrives(questions, 0, 1, {0, 1});
    EXPECT_THAT(says(questions, 0, 1, {{Whose::failed, 0}}), ElementsAre(Close{1, Why::failed, 0}));
}

// What arrives while a question is open goes into the next one. No question is larger than a
// message may be.
TEST(OwnerQuestions, ACrowdIsAskedForInBatches) {
    OwnerQuestions questions(1, kPatience);
    EXPECT_THAT(arrives(questions, 0, 1), ElementsAre(Ask{0, 1, {1}}));
    for (std::uint64_t i = 2; i <= 301; ++i) EXPECT_THAT(arrives(questions, 0, i), IsEmpty());
    std::vector<std::uint64_t> batch(OwnerQuestions::kBatch);
    std::iota(batch.begin(), batch.end(), 2);
    EXPECT_THAT(says(questions, 0, 1, {kOurs}), ElementsAre(Admit{1}, Ask{0, 2, batch}));
    const Effects effects =
        says(questions, 0, 2, std::vector<SocketOwner>(OwnerQuestions::kBatch, kOurs));
    ASSERT_THAT(effects, SizeIs(OwnerQuestions::kBatch + 1));
    EXPECT_THAT(std::get<Ask>(effects.back()).connections, SizeIs(44));
}

// A flood from one host is bounded, and another host does not notice it.
TEST(OwnerQuestions, AFloodWaitsAtItsOwnMember) {
    OwnerQuestions questions(2, kPatience);
    for (std::uint64_t i = 0; i < OwnerQuestions::kMostWaiting; ++i) arrives(questions, 0, i);
    for (std::uint64_t i = 5000; i < 15'000; ++i)
        EXPECT_THAT(arrives(questions, 0, i), ElementsAre(Close{i, Why::crowd, 0}));
    EXPECT_THAT(arrives(questions, 0, 20'000, {1}), ElementsAre(Ask{1, 2, {20'000}}));
    // Each answer makes room again.
    says(questions, 0, 1, {{Whose::other, 1001}});
    EXPECT_THAT(arrives(questions, 0, 20'001), IsEmpty());
}

// A member that is frozen: each connection waits for half a lease from its own arrival. What is
// said about it later is not used.
TEST(OwnerQuestions, NoAnswerClosesAndALateOneDoesNothing) {
    OwnerQuestions questions(1, kPatience);
    arrives(questions, 0, 1);
    arrives(questions, 1, 2);
    EXPECT_EQ(questions.next_deadline(), at(5));
    questions.tick(at(4.9));
    EXPECT_THAT(questions.take(), IsEmpty());
    questions.tick(at(5));
    EXPECT_THAT(questions.take(), ElementsAre(Close{1, Why::no_answer, 0}, Ask{0, 2, {2}}));
    EXPECT_EQ(questions.next_deadline(), at(6));
    // It goes on, and answers both.
    EXPECT_THAT(says(questions, 0, 1, {kOurs}), IsEmpty());
    EXPECT_THAT(says(questions, 0, 2, {kOurs}), ElementsAre(Admit{2}));
}

// In a long silence there is one question each half lease, and none about those that were closed.
TEST(OwnerQuestions, ThoseThatWereClosedAreForgotten) {
    OwnerQuestions questions(1, kPatience);
    std::vector<Ask> asked;
    for (std::uint64_t i = 0; i < 1000; ++i) {
        arrives(questions, static_cast<double>(i), i);
        questions.tick(at(static_cast<double>(i)));
        for (const auto& effect : questions.take())
            if (const auto* ask = std::get_if<Ask>(&effect)) asked.push_back(*ask);
    }
    ASSERT_THAT(asked, SizeIs(199));
    EXPECT_THAT(asked.back().connections, ElementsAre(991, 992, 993, 994, 995));
    EXPECT_THAT(says(questions, 0, asked.back().number, std::vector<SocketOwner>(5, kOurs)),
                ElementsAre(Admit{995}, Ask{0, 201, {996, 997, 998, 999}}));
}

// A member that breaks the rules gets nobody in: an old number, a member that was not asked, an
// answer twice.
TEST(OwnerQuestions, AnswersToOtherQuestionsAreIgnored) {
    OwnerQuestions questions(2, kPatience);
    arrives(questions, 0, 1);
    EXPECT_THAT(says(questions, 0, 0, {kOurs}), IsEmpty());
    EXPECT_THAT(says(questions, 1, 1, {kOurs}), IsEmpty());
    EXPECT_THAT(says(questions, 2, 1, {kOurs}), IsEmpty());
    EXPECT_THAT(says(questions, 0, 1, {kOurs}), ElementsAre(Admit{1}));
    EXPECT_THAT(says(questions, 0, 1, {kOurs}), IsEmpty());
}

// With a wrong count nobody knows whose is whose. Those that come next are asked for all the same.
TEST(OwnerQuestions, AnAnswerWithAWrongCountLetsNobodyIn) {
    for (const std::size_t count : {0, 2, 300}) {
        OwnerQuestions questions(1, kPatience);
        arrives(questions, 0, 1);
        arrives(questions, 0, 2);
        EXPECT_THAT(says(questions, 0, 1, std::vector<SocketOwner>(count, kOurs)),
                    ElementsAre(Close{1, Why::failed, 0}, Ask{0, 2, {2}}));
        EXPECT_THAT(says(questions, 0, 2, {kOurs}), ElementsAre(Admit{2}));
    }
}

// Containers of two hosts have the same bridge address, and so do the tasks of one host. The next
// is asked only if the one before does not find the connection.
TEST(OwnerQuestions, SeveralMembersWithOneAddress) {
    OwnerQuestions questions(3, kPatience);
    EXPECT_THAT(arrives(questions, 0, 1, {0, 2}), ElementsAre(Ask{0, 1, {1}}));
    EXPECT_THAT(says(questions, 0, 1, {kNotHere}), ElementsAre(Ask{2, 2, {1}}));
    EXPECT_THAT(says(questions, 2, 2, {kOurs}), ElementsAre(Admit{1}));
    arrives(questions, 0, 2, {0, 2});
    EXPECT_THAT(says(questions, 0, 3, {{Whose::other, 7}}),
                ElementsAre(Close{2, Why::other_user, 0, 7}))
        << "who has found it knows";
    // All of its time is half a lease, however many are asked.
    arrives(questions, 10, 3, {0, 2});
    says(questions, 0, 4, {kNotHere});
    questions.tick(at(15));
    EXPECT_THAT(questions.take(), ElementsAre(Close{3, Why::no_answer, 2}));
}

// Workers in containers with a network of their own: nobody finds their sockets, and the address
// has to do.
TEST(OwnerQuestions, WhoIsFoundByNobodyComesInByItsAddress) {
    for (const Whose whose : {Whose::not_here, Whose::unknown}) {
        OwnerQuestions questions(2, kPatience);
        arrives(questions, 0, 1, {0, 1});
        says(questions, 0, 1, {{whose, 0}});
        EXPECT_THAT(says(questions, 1, 2, {{whose, 0}}), ElementsAre(Admit{1, 1}));
    }
}

}  // namespace
}  // namespace ddprun::store

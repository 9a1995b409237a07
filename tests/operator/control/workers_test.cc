// What operators ask a node about its own workers, over real sockets: a node that does not lead, a
// worker whose text the test makes, and readers who read, stop, and go.
#include "operator/control/workers.h"

#include <gmock/gmock.h>

#include "tests/operator/control/control_rig.h"

namespace ddprun::rendezvous {
namespace {

using testing::HasSubstr;

// Rank 3 of generation 5. What it prints is what the test says; the reader's side of the agent is
// tested with the agent (recent_output_test.cc).
class Rank3 {
  public:
    OwnWorkers answers() {
        OwnWorkers answers;
        answers.read = [this](const WorkerAsked& asked, std::size_t lines,
                              std::function<void()> more) -> Result<ReadWorker> {
            if (const auto no = refuses(asked)) return *no;
            said_lines = lines;
            return ReadWorker{Generation{5}, std::make_unique<Reader>(*this, std::move(more))};
        };
        answers.look = [this](const WorkerAsked& asked,
                              std::function<void(Result<WorkerStacks>)> done) {
            if (const auto no = refuses(asked)) return done(*no);
            if (never_looks) return void(waiting.push_back(std::move(done)));
            done(WorkerStacks{Generation{5}, 4711, {"in train (train.py:9)", "thread 4711 runs"}});
        };
        return answers;
    }
    // On the loop.
    void prints(const WorkerText& text) {
        texts.push_back(text);
        for (const auto& [reader, more] : readers) more();
    }
    std::vector<WorkerText> texts;
    std::atomic<int> open_readers = 0, taken = 0;
    std::size_t said_lines = 0;
    bool never_looks = false;
    std::vector<std::function<void(Result<WorkerStacks>)>> waiting;

  private:
    class Reader : public WorkerReader {
      public:
        Reader(Rank3& of, std::function<void()> more) : of_(of) {
            ++of_.open_readers;
            of_.readers[this] = std::move(more);
        }
        ~Reader() override {
            of_.readers.erase(this);
            --of_.open_readers;
        }
        WorkerText take(std::size_t most) override {
            EXPECT_LE(most, 128 << 10);
            if (next_ == of_.texts.size()) return {};
            ++of_.taken;
            return of_.texts[next_++];
        }

      private:
        Rank3& of_;
        std::size_t next_ = 0;
    };
    static std::optional<Error> refuses(const WorkerAsked& asked) {
        if (asked.generation > Generation{5}) return Error(ErrorCode::unavailable, "not yet");
        if (asked.rank != 3) return Error(ErrorCode::not_found, "runs no rank 4\n");
        return std::nullopt;
    }
    std::map<Reader*, std::function<void()>> readers;
};

WorkerText text(const std::string& out, bool ended = false) {
    WorkerText text;
    text.pieces = {{false, out}};
    text.ended = ended;
    return text;
}

control::LogsRequest request(bool follow, int rank = 3, std::int64_t generation = 5) {
    control::LogsRequest asked;
    asked.set_rank(rank);
    asked.set_generation(generation);
    asked.set_lines(20);
    asked.set_follow(follow);
    return asked;
}

// A dormant node with the worker. The worker outlives it.
struct Node {
    Rank3 worker;
    Job job{given(kSecret), false};
    Node() { job.serves(worker.answers()); }
    void prints(const WorkerText& text) {
        job.on_loop([&] { worker.prints(text); });
    }
};

TEST(Workers, Rule27h_ANodeThatDoesNotLeadAnswersForItsOwn) {
    Node node;
    node.prints(text("one\n"));
    auto alice = visit(node.job);
    ASSERT_TRUE(alice) << alice.error();
    EXPECT_TRUE(node.job.has_visitors());
    Context context;
    const auto stream = (*alice)->workers().Logs(&context, request(true));
    control::LogsReply reply;
    ASSERT_TRUE(stream->Read(&reply));
    EXPECT_EQ(reply.generation(), 5);
    EXPECT_EQ(reply.pieces(0).text(), "one\n");
    WorkerText more = text("");
    more.pieces = {{true, "warning\n"}};
    more.lost_lines = 7;
    more.lost_bytes = 700;
    node.prints(more);
    ASSERT_TRUE(stream->Read(&reply));
    EXPECT_TRUE(reply.pieces(0).is_err());
    EXPECT_EQ(reply.lost_lines(), 7);
    EXPECT_EQ(reply.lost_bytes(), 700);
    EXPECT_FALSE(reply.ended());
    node.prints(text("last\n", true));
    ASSERT_TRUE(stream->Read(&reply));
    EXPECT_TRUE(reply.ended());
    EXPECT_FALSE(stream->Read(&reply));
    EXPECT_TRUE(stream->Finish().ok());
    EXPECT_TRUE(comes_true([&] { return node.worker.open_readers == 0; }));
    // For the job it still is no leader.
    Context other;
    control::StatusReply status;
    EXPECT_EQ((*alice)->stub().Status(&other, {}, &status).error_code(),
              grpc::StatusCode::UNAVAILABLE);
    alice->reset();
    EXPECT_TRUE(comes_true([&] { return !node.job.has_visitors(); }));
}

// The loop ends at once with the job, and what a reader has not had by then would be lost.
TEST(Workers, ANodeThatLeavesLetsItsReadersReadToTheEnd) {
    Node node;
    auto alice = visit(node.job);
    ASSERT_TRUE(alice) << alice.error();
    Context context;
    const auto stream = (*alice)->workers().Logs(&context, request(true));
    ASSERT_TRUE(comes_true([&] { return node.worker.open_readers == 1; }));
    for (int i = 0; i < 30; ++i) node.prints(text(std::string(128 << 10, 'x')));
    node.prints(text("last\n", true));
    std::string last;
    std::thread reading([&] {
        control::LogsReply reply;
        while (stream->Read(&reply)) last = reply.pieces(0).text();
        EXPECT_TRUE(stream->Finish().ok());
        alice->reset();
    });
    node.job.leaves();
    EXPECT_FALSE(node.job.has_visitors());
    context.TryCancel();
    reading.join();
    EXPECT_EQ(last, "last\n");
}

TEST(Workers, ANodeThatLeavesDoesNotWaitForWhoDoesNotRead) {
    Node node;
    auto alice = visit(node.job);
    ASSERT_TRUE(alice) << alice.error();
    node.job.leaves();
    EXPECT_TRUE(node.job.has_visitors());
}

// Who asks for the job's leader is still told where it is, or that nobody knows.
TEST(Workers, AnswersOnlyWhoAsksForThisNode) {
    Node node;
    const auto for_leader = open(node.job);
    ASSERT_FALSE(for_leader);
    EXPECT_THAT(for_leader.error().sentence(), HasSubstr("knows no leader now"));
    const auto mallory = visit(node.job, given("a secret of others only"));
    ASSERT_FALSE(mallory);
    EXPECT_EQ(mallory.error().code(), ErrorCode::refused);
}

TEST(Workers, SaysWhatItDoesNotHave) {
    Node node;
    auto alice = visit(node.job);
    ASSERT_TRUE(alice) << alice.error();
    const auto asked = [&](const control::LogsRequest& request) {
        Context context;
        const auto stream = (*alice)->workers().Logs(&context, request);
        control::LogsReply reply;
        EXPECT_FALSE(stream->Read(&reply));
        return stream->Finish();
    };
    const grpc::Status no_rank = asked(request(false, 4));
    EXPECT_EQ(no_rank.error_code(), grpc::StatusCode::NOT_FOUND);
    EXPECT_EQ(no_rank.error_message(), "runs no rank 4\\n");
    EXPECT_EQ(asked(request(false, 3, 6)).error_code(), grpc::StatusCode::UNAVAILABLE);
    control::LogsRequest wrong = request(false);
    wrong.set_lines(-1);
    EXPECT_EQ(asked(wrong).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    wrong.set_lines(10'001);
    EXPECT_EQ(asked(wrong).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    node.job.serves(std::nullopt);
    EXPECT_EQ(asked(request(false)).error_code(), grpc::StatusCode::UNAVAILABLE);
}

// Without follow, also of a worker that has printed nothing.
TEST(Workers, EndsAfterTheLastLines) {
    Node node;
    auto alice = visit(node.job);
    ASSERT_TRUE(alice) << alice.error();
    for (const int pieces : {0, 1}) {
        Context context;
        const auto stream = (*alice)->workers().Logs(&context, request(false));
        control::LogsReply reply;
        ASSERT_TRUE(stream->Read(&reply));
        EXPECT_EQ(reply.pieces_size(), pieces);
        EXPECT_FALSE(stream->Read(&reply));
        EXPECT_TRUE(stream->Finish().ok());
        node.prints(text("one\n"));
    }
    EXPECT_EQ(node.worker.said_lines, 20);
}

// It takes no text that nobody has room for: what waits stays with the worker, and is bounded
// there.
TEST(Workers, TakesNoMoreThanAReaderWhoHasStoppedCanHold) {
    Node node;
    auto alice = visit(node.job);
    ASSERT_TRUE(alice) << alice.error();
    Context context;
    const auto stream = (*alice)->workers().Logs(&context, request(true));
    ASSERT_TRUE(comes_true([&] { return node.worker.open_readers == 1; }));
    constexpr int kTexts = 200;
    for (int i = 0; i < kTexts; ++i) node.prints(text(std::string(128 << 10, 'x')));
    // The client's side of gRPC holds some, too.
    EXPECT_LT(node.worker.taken, 40) << "of 200 pieces";
    control::LogsReply reply;
    for (int i = 0; i < kTexts; ++i) ASSERT_TRUE(stream->Read(&reply)) << i;
    EXPECT_EQ(node.worker.taken, kTexts);
    context.TryCancel();
    EXPECT_TRUE(comes_true([&] { return node.worker.open_readers == 0; })) << "he has gone";
}

TEST(Workers, ServesSoManyReaders) {
    Node node;
    std::vector<std::unique_ptr<OperatorConnection>> operators;
    struct Stream {
        Context context;
        std::unique_ptr<grpc::ClientReader<control::LogsReply>> stream;
    };
    std::vector<std::unique_ptr<Stream>> streams;
    for (int i = 0; i < 33; ++i) {
        if (i % 11 == 0) {
            auto one = visit(node.job);
            ASSERT_TRUE(one) << one.error();
            operators.push_back(std::move(*one));
        }
        auto& stream = *streams.emplace_back(std::make_unique<Stream>());
        stream.stream = operators.back()->workers().Logs(&stream.context, request(true));
        ASSERT_TRUE(comes_true([&] { return node.worker.open_readers == std::min(i + 1, 32); }));
    }
    control::LogsReply reply;
    EXPECT_FALSE(streams.back()->stream->Read(&reply));
    const grpc::Status refused = streams.back()->stream->Finish();
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_THAT(refused.error_message(), HasSubstr("32 operators read"));
    for (const auto& stream : streams) stream->context.TryCancel();
    EXPECT_TRUE(comes_true([&] { return node.worker.open_readers == 0; }));
}

TEST(Workers, SaysWhereAWorkerIs) {
    Node node;
    auto alice = visit(node.job);
    ASSERT_TRUE(alice) << alice.error();
    control::StacksRequest asked;
    asked.set_rank(3);
    asked.set_generation(5);
    control::StacksReply reply;
    Context context;
    ASSERT_TRUE((*alice)->workers().Stacks(&context, asked, &reply).ok());
    EXPECT_EQ(reply.pid(), 4711);
    EXPECT_EQ(reply.lines(0), "in train (train.py:9)");
    asked.set_rank(4);
    Context other;
    EXPECT_EQ((*alice)->workers().Stacks(&other, asked, &reply).error_code(),
              grpc::StatusCode::NOT_FOUND);
}

// Looks that do not come back, and a reader who waits: the service ends all the same. One look more
// than are allowed is refused at once.
TEST(Workers, EndsWithTheService) {
    Rank3 worker;
    worker.never_looks = true;
    auto job = std::make_unique<Job>(given(kSecret), false);
    job->serves(worker.answers());
    auto alice = visit(*job);
    ASSERT_TRUE(alice) << alice.error();
    Context context;
    const auto stream = (*alice)->workers().Logs(&context, request(true));
    std::atomic<int> refused = 0, ended = 0;
    std::vector<std::thread> looks;
    for (int i = 0; i < 5; ++i)
        looks.emplace_back([&] {
            control::StacksRequest asked;
            asked.set_rank(3);
            control::StacksReply reply;
            Context context;
            const auto code = (*alice)->workers().Stacks(&context, asked, &reply).error_code();
            refused += code == grpc::StatusCode::RESOURCE_EXHAUSTED;
            ended += code == grpc::StatusCode::UNAVAILABLE;
        });
    EXPECT_TRUE(comes_true([&] { return refused == 1 && worker.open_readers == 1; }));
    job.reset();
    for (std::thread& look : looks) look.join();
    EXPECT_EQ(ended, 4);
    control::LogsReply reply;
    EXPECT_FALSE(stream->Read(&reply));
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
    for (const auto& done : worker.waiting) done(WorkerStacks{});  // nobody asks any more
}

}  // namespace
}  // namespace ddprun::rendezvous

// A disk that fails while a snapshot is read: pread() is replaced here, and returns EIO for the
// files that a test names. And files that become shorter while a program has them. Every such error
// leads to the next older snapshot, and never to a signal.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "tests/trainer/ranks.h"
#include "tests/trainer/snapshot/state.h"
#include "trainer/snapshot/load/load_slices.h"
#include "trainer/snapshot/load/part_reader.h"
#include "trainer/snapshot/save/snapshot_writer.h"

namespace {

// The file whose bytes from `bad_from` on cannot be read.
std::atomic<ino_t> bad_file{0};
std::atomic<off_t> bad_from{0};

}  // namespace

extern "C" ssize_t pread(int fd, void* to, size_t bytes, off_t at) {
    struct stat info {};
    if (bad_file && !fstat(fd, &info) && info.st_ino == bad_file &&
        at + static_cast<off_t>(bytes) > bad_from) {
        errno = EIO;
        return -1;
    }
    return syscall(SYS_pread64, fd, to, bytes, at);
}

namespace ddprun::trainer {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;
using test::Ends;
using test::run_ranks;
using test::State;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kNewest[] = "snapshot-000000000020-g0.safetensors";

class ReadErrors : public testing::Test {
  protected:
    ReadErrors() {
        auto folder = open();
        for (std::int64_t step : {10, 20}) EXPECT_TRUE(folder.save(step, State(step).views(), {}));
    }
    ~ReadErrors() override { bad_file = 0; }

    SnapshotFolder open() {
        return std::move(*SnapshotFolder::open(
            {}, folder_, 3, [this](const std::string& text) { warnings_.push_back(text); }));
    }
    void spoil(const std::string& name, off_t from = 0) {
        struct stat info {};
        ASSERT_EQ(stat((folder_.path() / name).c_str(), &info), 0);
        bad_from = from;
        bad_file = info.st_ino;
    }

    test::TemporaryFolder folder_;
    std::vector<std::string> warnings_;
};

TEST_F(ReadErrors, LeadToTheOlderSnapshot) {
    for (const off_t from : {0, 70'000}) {
        warnings_.clear();
        spoil(kNewest, from);
        auto snapshot = open().load_newest();
        ASSERT_TRUE(snapshot && *snapshot);
        EXPECT_TRUE(State(10).is_in(**snapshot));
        EXPECT_THAT(warnings_,
                    ElementsAre(AllOf(HasSubstr("snapshot-000000000020-g0.json is skipped"),
                                      HasSubstr(kNewest), HasSubstr("Input/output error"))));
    }
}

// One node's disk or network fails. A rank that went on alone with another snapshot would train
// nonsense, and a job that ended would end again after each restart.
TEST_F(ReadErrors, OfOneRankLeadAllRanksToTheOlderSnapshot) {
    const auto ends = run_ranks(3, [&](const Context& context) {
        if (context.rank.value == 1) spoil(kNewest);
        auto store = connect_store(context, seconds(10)).value();
        auto folder = open();
        auto snapshot = resume(context, *store, folder, seconds(10));
        if (!snapshot || !*snapshot || !State(10).is_in(**snapshot)) return 1;
        State state(0);
        std::vector<Tensor> tensors;
        for (std::size_t t = 0; t < state.values.size(); ++t)
            tensors.push_back(tensor("t" + std::to_string(t), {state.values[t].size()},
                                     std::span(state.values[t])));
        auto loaded = resume_into(context, *store, folder, tensors, seconds(10));
        if (!loaded || !*loaded || state.values != State(10).values) return 2;
        const auto names_rank = [](const std::string& text) {
            return text.find("is skipped: rank 1: ") != std::string::npos &&
                   text.find("Input/output error") != std::string::npos;
        };
        const bool said = std::count_if(warnings_.begin(), warnings_.end(), names_rank) == 2;
        return said == context.is_first() ? 0 : 3;
    });
    EXPECT_EQ(ends, Ends({0, 0, 0}));
}

// Where only the older one loads, the training goes on from there, through the same steps.
TEST_F(ReadErrors, DoNotStopTheSavesThatFollow) {
    spoil(kNewest);
    auto folder = open();
    ASSERT_TRUE(folder.load_newest());
    EXPECT_TRUE(folder.save(15, State(15).views(), {}));
    EXPECT_TRUE(folder.save(20, State(21).views(), {}));
    auto snapshot = open().load_newest();
    ASSERT_TRUE(snapshot && *snapshot);
    EXPECT_TRUE(State(21).is_in(**snapshot));
}

// The same without a resume before: the save itself finds that the newer one does not load.
TEST_F(ReadErrors, DoNotStopASaveBehindThem) {
    spoil(kNewest);
    auto folder = open();
    EXPECT_TRUE(folder.save(15, State(15).views(), {}));
}

// A training that has loaded a snapshot is not at the mercy of its file.
TEST_F(ReadErrors, DoNotConcernWhatIsLoaded) {
    auto snapshot = open().load_newest();
    ASSERT_TRUE(snapshot && *snapshot);
    fs::resize_file(folder_.path() / kNewest, 0);
    EXPECT_TRUE(State(20).is_in(**snapshot));
}

TEST_F(ReadErrors, AreErrorsWhereAFileBecomesShorterMeanwhile) {
    const auto manifest = read_manifest(folder_, {20, Generation(0)});
    ASSERT_TRUE(manifest);
    auto reader = PartReader::open(folder_, manifest->files[0]);
    ASSERT_TRUE(reader);
    const auto header = reader->header();
    ASSERT_TRUE(header);
    fs::resize_file(folder_.path() / kNewest, 8000);
    std::vector<std::byte> to(header->tensors[3].data.size());
    const auto done = reader->copy(to.data(), header->tensors[3].data);
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error().sentence(), HasSubstr("it has become shorter"));
}

// What cannot be read back is not called saved: the third of three is read back.
TEST_F(ReadErrors, AreErrorsOfTheSaveThatIsReadBack) {
    auto folder = std::move(*SnapshotFolder::open({}, folder_, 1, {}));
    ASSERT_TRUE(folder.load_newest());
    const auto plan = folder.begin({30, Generation(0)});
    ASSERT_TRUE(plan && plan->read_back);
    PageBuffer content;
    const auto copy = [](std::byte* to, const TensorView& tensor) -> Result<void> {
        std::copy(tensor.data.begin(), tensor.data.end(), to);
        return {};
    };
    ASSERT_TRUE(lay_out(State(30).views(), content, copy));
    const auto file = folder.write_file("snapshot-000000000030-g0.safetensors", content);
    ASSERT_TRUE(file);
    spoil(file->name, 60'000);
    const auto same = folder.read_back(*file);
    ASSERT_FALSE(same);
    EXPECT_EQ(same.error().code(), ErrorCode::unavailable);
    EXPECT_THAT(same.error().sentence(), HasSubstr("Input/output error"));
}

}  // namespace
}  // namespace ddprun::trainer

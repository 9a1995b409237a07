#include "rendezvous/ledger/ledger_directory.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <thread>

#include "base/hexadecimal.h"
#include "rendezvous/ledger/ledger_folder.h"
#include "rendezvous/ledger/ledger_memory.h"
#include "tests/rendezvous/ledger/ledger_bench.h"

namespace ddprun::rendezvous {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAreArray;

using Bench = LedgerBench;

std::vector<std::string> names(const std::string& folder) {
    std::vector<std::string> list;
    for (const auto& file : std::filesystem::directory_iterator(folder))
        list.push_back(file.path().filename().string());
    std::sort(list.begin(), list.end());
    return list;
}

TEST(LedgerMemory, WritesOnce) {
    Bench bench;
    LedgerMemory ledger(bench.loop);
    keeps_the_promises(bench, ledger);
}

TEST(LedgerDirectory, WritesOnceAndLeavesNothingElse) {
    Bench bench;
    const Folder folder;
    const auto ledger = bench.open(folder / "a/b/8812.0/");
    ASSERT_TRUE(ledger) << ledger.error();
    keeps_the_promises(bench, **ledger);
    EXPECT_THAT(names(folder / "a/b/8812.0"),
                ElementsAre("entry-000000.json", "entry-000001.json", "ledger.json"));
}

// Eight processes and four threads each want entry 0: one has won, all others are shown the
// winner's.
TEST(LedgerDirectory, OneOfManyWritersWins) {
    const Folder folder;
    std::vector<pid_t> children;
    for (int i = 0; i < 8; ++i) {
        const pid_t child = ::fork();
        if (child == 0) {
            Bench bench;
            LedgerDirectory ledger(folder / "", 0, bench.files);
            const auto got = bench.create(ledger, example_entry(0, 100 + i));
            ::_exit(got.outcome == Outcome::won ? 0 : got.outcome == Outcome::lost ? 1 : 2);
        }
        children.push_back(child);
    }
    std::atomic<int> won = 0, lost = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&, i] {
            Bench bench;
            LedgerDirectory ledger(folder / "", 0, bench.files);
            ++(bench.create(ledger, example_entry(0, i)).outcome == Outcome::won ? won : lost);
        });
    for (std::thread& thread : threads) thread.join();
    for (pid_t child : children) {
        int status = 0;
        ::waitpid(child, &status, 0);
        ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) < 2) << status;
        ++(WEXITSTATUS(status) == 0 ? won : lost);
    }
    EXPECT_EQ(won, 1);
    EXPECT_EQ(lost, 11);
    EXPECT_THAT(names(folder / ""), ElementsAre("entry-000000.json"));
}

TEST(LedgerDirectory, NamesACutEntry) {
    Bench bench;
    const Folder folder;
    const auto ledger = bench.open(folder / "job");
    std::ofstream(folder / "job/entry-000000.json") << R"({"format": "ddprun led)";
    EXPECT_THAT(bench.read(**ledger, 0).error().sentence(),
                HasSubstr("job/entry-000000.json is cut"));
    const LedgerCreated created = bench.create(**ledger, example_entry(0));
    EXPECT_EQ(created.outcome, Outcome::failed);
    EXPECT_THAT(created.sentence, HasSubstr("job/entry-000000.json is cut"));
    EXPECT_THAT(bench.open(folder / "job").error().sentence(),
                HasSubstr("entry-000000.json is cut or is not JSON; move its folder away if no job "
                          "needs it, or choose another with --ledger=directory:PATH"));
}

TEST(LedgerDirectory, SaysWhichFolderCannotBeUsed) {
    Bench bench;
    const Folder folder;
    std::ofstream(folder / "file") << "in the way";
    const auto blocked = bench.open(folder / "file/job");
    EXPECT_EQ(blocked.error().code(), ErrorCode::unavailable);
    EXPECT_THAT(
        blocked.error().sentence(),
        HasSubstr("file/job: Not a directory; choose another with --ledger=directory:PATH"));
    EXPECT_EQ(bench.open("/proc/ddprun-ledger").error().code(), ErrorCode::unavailable);
    if (::geteuid() == 0) return;  // root may write everywhere
    std::filesystem::create_directory(folder / "closed");
    std::filesystem::permissions(folder / "closed", std::filesystem::perms::owner_read);
    EXPECT_THAT(bench.open(folder / "closed").error().sentence(),
                HasSubstr("Permission denied; choose another"));
}

// A finished job's ledger is moved aside, by its mark; one's own goes on, and says so.
TEST(LedgerDirectory, SetsFinishedLedgersAside) {
    Bench bench;
    const Folder folder;
    std::vector<std::string> expected{"job"};
    for (int round = 1; round <= 2; ++round) {
        const auto ledger = bench.open(folder / "job");
        ASSERT_TRUE(ledger) << ledger.error();
        EXPECT_TRUE(bench.read(**ledger, 0)->empty());
        bench.create(**ledger, example_entry(0));
        bench.create(**ledger, example_end(1));
        expected.push_back("job-finished-" + hexadecimal((*ledger)->mark()));
    }
    const auto fresh = bench.open(folder / "job");
    EXPECT_TRUE(bench.read(**fresh, 0)->empty());
    EXPECT_THAT(names(folder / ""), UnorderedElementsAreArray(expected));
    EXPECT_TRUE(bench.lines.has(expected.back() + ", and a new one begins"));

    bench.create(**fresh, example_entry(0));
    const auto again = bench.open(folder / "job", Bench::owner("abc123", 1));
    EXPECT_EQ(bench.read(**again, 0)->size(), 1u) << "a requeued job goes on";
    EXPECT_EQ((*again)->mark(), (*fresh)->mark());
    EXPECT_TRUE(bench.lines.has("goes on after entry 0 (generation 5, written by gpu01)"));
}

// Two jobs of one run id but with different commands, at once: each has a ledger of its own, finds
// it again, and the first one's is not touched.
TEST(LedgerDirectory, AnotherCommandBeginsOneOfItsOwn) {
    Bench bench;
    const Folder folder;
    const auto first = bench.open(folder / "job");
    bench.create(**first, example_entry(0, 1));
    const auto second = bench.open(folder / "job", Bench::owner("other"));
    EXPECT_TRUE(bench.lines.has("is that of another command with this run id"));
    EXPECT_TRUE(bench.read(**second, 0)->empty());
    EXPECT_EQ(bench.create(**second, example_entry(0, 2)).outcome, Outcome::won);
    EXPECT_EQ(bench.create(**first, example_entry(1, 3)).outcome, Outcome::won);
    EXPECT_THAT(*bench.read(**first, 0), ElementsAre(example_entry(0, 1), example_entry(1, 3)));
    EXPECT_THAT(names(folder / ""), ElementsAre("job", "job-other"));
}

// The command that stands in the claim counts before there is any entry: two that begin at the same
// moment part there.
TEST(LedgerDirectory, TwoCommandsPartBeforeTheFirstEntry) {
    Bench bench;
    const Folder folder;
    const auto first = bench.open(folder / "job"),
               second = bench.open(folder / "job", Bench::owner("other"));
    EXPECT_EQ(bench.create(**first, example_entry(0, 1)).outcome, Outcome::won);
    EXPECT_EQ(bench.create(**second, example_entry(0, 2)).outcome, Outcome::won);
}

// One who saw the finished ledger and comes late to set it aside does nothing to the one that
// another has begun in its place meanwhile, be that as young as it may.
TEST(LedgerDirectory, WhoComesLateSetsNothingAside) {
    Bench bench;
    const Folder folder;
    const std::uint64_t finished = (*bench.open(folder / "job"))->mark();
    const auto moved = move_aside(folder / "job", "finished", finished);
    ASSERT_TRUE(moved && *moved) << "the first one moves it";
    const auto late = [&] { return move_aside(folder / "job", "finished", finished); };
    const auto nothing_there = late();
    EXPECT_TRUE(nothing_there && !*nothing_there);
    std::filesystem::create_directory(folder / "job");
    const auto without_claim = late();
    EXPECT_TRUE(without_claim && !*without_claim);
    const auto fresh = bench.open(folder / "job");
    const auto begun = late();
    EXPECT_TRUE(begun && !*begun);
    EXPECT_EQ(bench.create(**fresh, example_entry(0)).outcome, Outcome::won);
    EXPECT_EQ(read_claim(**moved)->mark, finished);
}

// Eight that begin at once where a finished ledger lies: it is set aside once, and all agree on one
// new ledger.
TEST(LedgerDirectory, ManyBeginAtOnceAfterAFinishedOne) {
    const Folder folder;
    std::uint64_t finished = 0;
    {
        Bench bench;
        const auto ledger = bench.open(folder / "job");
        finished = (*ledger)->mark();
        bench.create(**ledger, example_entry(0));
        bench.create(**ledger, example_end(1));
    }
    std::atomic<int> won = 0, lost = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i)
        threads.emplace_back([&, i] {
            Bench bench;
            const auto ledger = bench.open(folder / "job");
            ASSERT_TRUE(ledger) << ledger.error();
            ++(bench.create(**ledger, example_entry(0, i)).outcome == Outcome::won ? won : lost);
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(won, 1);
    EXPECT_EQ(lost, 7);
    EXPECT_THAT(names(folder / ""), ElementsAre("job", "job-finished-" + hexadecimal(finished)));
}

// An entry cut by a dead disk ends a job that begins; one that Slurm has requeued begins anew
// instead, and says where the old ledger lies.
TEST(LedgerDirectory, ARequeuedJobPassesACutEntry) {
    Bench bench;
    const Folder folder;
    const auto ledger = bench.open(folder / "job");
    bench.create(**ledger, example_entry(0));  // of requeue 1
    std::ofstream(folder / "job/entry-000001.json") << "";
    EXPECT_EQ(bench.open(folder / "job", Bench::owner("abc123", 1)).error().code(),
              ErrorCode::malformed);
    const auto next = bench.open(folder / "job", Bench::owner("abc123", 2));
    ASSERT_TRUE(next) << next.error();
    EXPECT_TRUE(bench.read(**next, 0)->empty());
    EXPECT_TRUE(bench.lines.has("entry-000001.json is cut"));
    EXPECT_THAT(names(folder / ""),
                ElementsAre("job", "job-damaged-" + hexadecimal((*ledger)->mark())));
}

// A successor opens the ledger that the job runs with, or none; nothing is begun or moved by
// looking.
TEST(LedgerDirectory, ASuccessorOpensTheSameOneOnly) {
    Bench bench;
    const Folder folder;
    const LedgerPlace place{LedgerPlace::Kind::directory, folder / "job", {}};
    const auto first = bench.open(place);
    const std::uint64_t mark = (*first)->mark();
    EXPECT_NE(mark, 0u);
    bench.create(**first, example_entry(0));
    const auto successor = bench.open(place, Bench::owner("abc123", 0, mark));
    ASSERT_TRUE(successor) << successor.error();
    EXPECT_EQ(bench.read(**successor, 0)->size(), 1u);
    EXPECT_EQ(bench.open(place, Bench::owner("abc123", 0, mark + 2)).error().code(),
              ErrorCode::not_found);
    const LedgerPlace unshared{LedgerPlace::Kind::directory, folder / "local", {}};
    const auto none = bench.open(unshared, Bench::owner("abc123", 0, mark));
    EXPECT_EQ(none.error().code(), ErrorCode::not_found);
    EXPECT_THAT(none.error().sentence(), HasSubstr("on a file system that all nodes share"));
    EXPECT_THAT(names(folder / ""), ElementsAre("job")) << "looking leaves nothing";
}

// Where PATH is another job's, the leader's ledger lies beside it, by the name of its own command,
// which need not be that of the node that follows.
TEST(LedgerDirectory, ASuccessorFindsTheOneBeside) {
    Bench bench;
    const Folder folder;
    const LedgerPlace place{LedgerPlace::Kind::directory, folder / "job", {}};
    bench.open(place, Bench::owner("first"));
    const auto beside = bench.open(place, Bench::owner("second"));
    const auto found = bench.open(place, Bench::owner("third", 0, (*beside)->mark()));
    ASSERT_TRUE(found) << found.error();
    EXPECT_EQ((*found)->folder(), folder / "job-second");
}

TEST(LedgerDirectory, TellsWhoComesLate) {
    Bench bench;
    const Folder folder;
    tells_who_comes_late(bench, {LedgerPlace::Kind::directory, folder / "job", {}});
}

// A folder that was deleted or replaced under a running job is read and written no more: what stands
// there now may be another job's.
TEST(LedgerDirectory, NoticesThatItsFolderIsGone) {
    Bench bench;
    const Folder folder;
    const auto ledger = bench.open(folder / "job");
    std::filesystem::rename(folder / "job", folder / "elsewhere");
    const auto gone = bench.create(**ledger, example_entry(0));
    EXPECT_EQ(gone.outcome, Outcome::failed);
    EXPECT_THAT(gone.sentence,
                HasSubstr("job is no longer that of this job: it was deleted or replaced"));
    const auto others = bench.open(folder / "job");
    EXPECT_EQ(bench.create(**ledger, example_entry(0)).outcome, Outcome::failed);
    EXPECT_TRUE(bench.read(**others, 0)->empty());
    bench.create(**others, example_entry(0));
    EXPECT_THAT(bench.read(**ledger, 0).error().sentence(), HasSubstr("no longer that of this"));
    std::filesystem::remove_all(folder / "job");
    std::filesystem::rename(folder / "elsewhere", folder / "job");
    EXPECT_EQ(bench.create(**ledger, example_entry(0)).outcome, Outcome::won) << "back again";
}

// The folder is set aside, and another job's stands in its place, between any two steps of who
// still writes to it: nothing of that is ever in the other's, nor read from there.
TEST(LedgerDirectory, WhoseFolderIsReplacedMeanwhileDoesNotTouchTheOthers) {
    const Folder folder;
    const std::string job = folder / "job", other = folder / "other";
    std::uint64_t ours = 0, theirs = 0;
    for (const auto& [path, mark] : {std::pair(job, &ours), std::pair(other, &theirs)}) {
        ASSERT_TRUE(make_folder(path));
        *mark = claim_folder(path, "abc123")->mark;
    }
    const LedgerEntry of_theirs = example_entry(0, 7);
    ASSERT_EQ(create_entry(other, theirs, of_theirs).outcome, Outcome::won);
    std::atomic<bool> over = false;
    std::thread swapping([&] {
        while (!over) ::renameat2(AT_FDCWD, job.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE);
    });
    int won = 0;
    EXPECT_TRUE(comes_true([&] {
        won += create_entry(job, ours, example_entry(won)).outcome == Outcome::won;
        const auto read = read_entries(job, ours, EntryNumber{0});
        EXPECT_THAT(read.whole, testing::Not(testing::Contains(of_theirs)));
        return won == 20 || testing::Test::HasFailure();
    }));
    over = true;
    swapping.join();
    const bool swapped = read_claim(job)->mark == theirs;
    EXPECT_THAT(names(swapped ? job : other), ElementsAre("entry-000000.json", "ledger.json"));
}

// A request that the file system's client repeated: the first one did it, the second says "exists",
// and reading tells. Also a stale look-up: a reader that misses the newest entry collides with it
// when it creates.
TEST(LedgerDirectory, ExistsIsAnsweredByReading) {
    Bench bench;
    const Folder folder;
    const auto mine = bench.open(folder / "job"), others = bench.open(folder / "job");
    bench.create(**mine, example_entry(0, 1));
    EXPECT_EQ(bench.create(**mine, example_entry(0, 1)).outcome, Outcome::won);
    const auto stale = *bench.read(**others, 0);
    bench.create(**mine, example_entry(1, 2));
    const auto collided = bench.create(**others, example_entry(static_cast<int>(stale.size()), 3));
    EXPECT_EQ(collided.outcome, Outcome::lost);
    EXPECT_EQ(collided.entry, example_entry(1, 2));
}

// A claim written by hand is refused by name.
TEST(LedgerDirectory, NamesAClaimWrittenByHand) {
    Bench bench;
    const Folder folder;
    std::filesystem::create_directory(folder / "job");
    std::ofstream(folder / "job/ledger.json") << R"({"format": "ddprun ledger 1", "mark": "0"})";
    EXPECT_THAT(bench.open(folder / "job").error().sentence(), HasSubstr("job/ledger.json lacks"));
}

// What a writer that died has left goes at the next opening.
TEST(LedgerDirectory, RemovesTemporariesOfTheDead) {
    Bench bench;
    const Folder folder;
    std::filesystem::create_directory(folder / "job");
    std::ofstream(folder / "job/.writing-1-2") << "half";
    std::ofstream(folder / "job/.writing-3-4") << "just now";
    std::filesystem::last_write_time(
        folder / "job/.writing-1-2",
        std::filesystem::file_time_type::clock::now() - std::chrono::minutes{11});
    ASSERT_TRUE(bench.open(folder / "job"));
    EXPECT_THAT(names(folder / "job"), ElementsAre(".writing-3-4", "ledger.json"));
}

// A ledger that goes away calls nobody.
TEST(LedgerDirectory, IsSilentWhenDestroyed) {
    Bench bench;
    const Folder folder;
    auto ledger = bench.open(folder / "job");
    bool called = false;
    (*ledger)->create(example_entry(0), [&](LedgerCreated) { called = true; });
    ledger->reset();
    bench.loop.restart();
    bench.loop.run();
    EXPECT_FALSE(called);
}

}  // namespace
}  // namespace ddprun::rendezvous

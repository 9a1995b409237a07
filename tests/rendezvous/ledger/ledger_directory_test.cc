// The ledger in a real folder: entries that are written once, many writers at once, and which
// folder belongs to which job. ledger_faults_test.cc has the file systems that fail. The tests of
// the ledger in memory are here, too: it has the same promises and nothing else.
#include "rendezvous/ledger/ledger_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <thread>

#include "base/hexadecimal.h"
#include "rendezvous/ledger/ledger_folder.h"
#include "rendezvous/ledger/ledger_memory.h"
#include "rendezvous/ledger/ledger_owner.h"
#include "tests/rendezvous/ledger/ledger_bench.h"

namespace ddprun::rendezvous {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAreArray;

using Bench = LedgerBench;

// The names of the files in a folder, sorted. Nothing but these may be left.
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

// The folder and its parents do not exist, and the path ends with a slash, as a user may write it.
// No temporary file is left behind.
TEST(LedgerDirectory, WritesOnceAndLeavesNothingElse) {
    Bench bench;
    const Folder folder;
    const auto ledger = bench.open(folder / "a/b/8812.0/");
    ASSERT_TRUE(ledger) << ledger.error();
    keeps_the_promises(bench, **ledger);
    EXPECT_THAT(names(folder / "a/b/8812.0"),
                ElementsAre("allocation", "entry-000000.json", "entry-000001.json", "ledger.json"));
}

// Eight processes and four threads create entry 0 at the same moment, as when a network splits and
// several nodes lead. Exactly one wins, and all others get the winner's entry.
TEST(LedgerDirectory, OneOfManyWritersWins) {
    const Folder folder;
    std::vector<pid_t> children;
    for (int i = 0; i < 8; ++i) {
        const pid_t child = ::fork();
        if (child == 0) {
            Bench bench;
            LedgerDirectory ledger(folder / "", 0, bench.files);
            const auto got = bench.create(ledger, example_entry(0, 100 + i));
            // 0 won, 1 lost, 2 failed: nobody may fail here.
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
    EXPECT_THAT(names(folder / ""), ElementsAre("allocation", "entry-000000.json"));
}

// A dead disk or an editor has cut an entry. It is never overwritten: a running job may rely on it.
// The sentence names the file and says what to do.
TEST(LedgerDirectory, NamesACutEntry) {
    Bench bench;
    const Folder folder;
    const auto ledger = bench.open(folder / "job");
    // The first bytes of an entry.
    std::ofstream(folder / "job/entry-000000.json") << R"({"format": "ddprun led)";
    EXPECT_THAT(bench.read(**ledger, 0).error().sentence(),
                HasSubstr("job/entry-000000.json is truncated"));
    const LedgerCreated created = bench.create(**ledger, example_entry(0));
    EXPECT_EQ(created.outcome, Outcome::failed);
    EXPECT_THAT(created.sentence, HasSubstr("job/entry-000000.json is truncated"));
    EXPECT_THAT(
        bench.open(folder / "job").error().sentence(),
        HasSubstr("entry-000000.json is truncated or is not JSON; move its folder away if no job "
                  "needs it, or choose another with --ledger=directory:PATH"));
}

// The same with the file that says whose the folder is.
TEST(LedgerDirectory, NamesACutClaim) {
    Bench bench;
    const Folder folder;
    std::filesystem::create_directory(folder / "job");
    std::filesystem::permissions(folder / "job", std::filesystem::perms::owner_all);
    std::ofstream(folder / "job/ledger.json") << R"({"form)";
    EXPECT_THAT(bench.open(folder / "job").error().sentence(),
                HasSubstr("job/ledger.json is truncated or is not JSON; move its folder away if no "
                          "job needs it, or choose another with --ledger=directory:PATH"));
}

// A wrong --ledger ends the job at its start, with the folder, the reason and the way out.
TEST(LedgerDirectory, SaysWhichFolderCannotBeUsed) {
    Bench bench;
    const Folder folder;
    std::ofstream(folder / "file") << "in the way";
    const auto blocked = bench.open(folder / "file/job");
    EXPECT_EQ(blocked.error().code(), ErrorCode::unavailable);
    EXPECT_THAT(
        blocked.error().sentence(),
        HasSubstr("file/job: Not a directory; choose another with --ledger=directory:PATH"));
    // Not even root can make a folder there.
    EXPECT_EQ(bench.open("/proc/ddprun-ledger").error().code(), ErrorCode::unavailable);
    // Root may write everywhere, so the rest needs another user.
    if (::geteuid() == 0) return;
    std::filesystem::create_directory(folder / "closed");
    std::filesystem::permissions(folder / "closed", std::filesystem::perms::owner_read);
    EXPECT_THAT(bench.open(folder / "closed").error().sentence(),
                HasSubstr("Permission denied; choose another"));
}

// A second job with the same run id must not continue the finished first one. It moves that ledger
// aside, under a name with its mark, and begins a new one. A ledger of its own that has no end is
// continued, as after a requeue, and a log line says so.
TEST(LedgerDirectory, SetsFinishedLedgersAside) {
    Bench bench;
    const Folder folder;
    std::vector<std::string> expected{"job"};
    // Twice, so that two finished ledgers have to lie side by side.
    for (int round = 1; round <= 2; ++round) {
        const auto ledger = bench.open(folder / "job");
        ASSERT_TRUE(ledger) << ledger.error();
        EXPECT_TRUE(bench.read(**ledger, 0)->empty());
        EXPECT_EQ((*ledger)->follows_end(), round == 2);
        bench.create(**ledger, example_entry(0));
        bench.create(**ledger, example_end(1));
        expected.push_back("job-finished-" + hexadecimal((*ledger)->mark()));
    }
    const auto fresh = bench.open(folder / "job");
    EXPECT_TRUE(bench.read(**fresh, 0)->empty());
    EXPECT_THAT(names(folder / ""), UnorderedElementsAreArray(expected));
    EXPECT_TRUE(bench.lines.has(expected.back() + ", and a new one begins"));

    // Now a job that has not ended: Slurm requeues it, and it opens its ledger again.
    bench.create(**fresh, example_entry(0));
    const auto again = bench.open(folder / "job", Bench::owner("abc123", 1));
    EXPECT_EQ(bench.read(**again, 0)->size(), 1u) << "a requeued job goes on";
    EXPECT_EQ((*again)->mark(), (*fresh)->mark());
    EXPECT_FALSE((*again)->follows_end());
    EXPECT_TRUE(bench.lines.has("continues after entry 0 (generation 5, written by gpu01)"));
}

// Two jobs with one run id and different commands run at once: a usual mistake. Each has a ledger
// of its own, and the first one's is not touched.
TEST(LedgerDirectory, AnotherCommandBeginsOneOfItsOwn) {
    Bench bench;
    const Folder folder;
    const auto first = bench.open(folder / "job");
    bench.create(**first, example_entry(0, 1));
    const auto second = bench.open(folder / "job", Bench::owner("other"));
    EXPECT_TRUE(bench.lines.has("belongs to another command with this run id"));
    EXPECT_TRUE(bench.read(**second, 0)->empty());
    EXPECT_EQ(bench.create(**second, example_entry(0, 2)).outcome, Outcome::won);
    EXPECT_EQ(bench.create(**first, example_entry(1, 3)).outcome, Outcome::won);
    EXPECT_THAT(*bench.read(**first, 0), ElementsAre(example_entry(0, 1), example_entry(1, 3)));
    EXPECT_THAT(names(folder / ""), ElementsAre("job", "job-other"));
}

// Only the end of this command proves that its own earlier allocation has ended.
TEST(LedgerDirectory, TheEndOfAnotherCommandSaysNothing) {
    Bench bench;
    const Folder folder;
    const auto ends = [&](const std::string& name, const std::string& digest) {
        const auto ledger = bench.open(folder / name, Bench::owner(digest));
        LedgerEntry entry = example_entry(0);
        entry.command_digest = digest;
        bench.create(**ledger, entry);
        bench.create(**ledger, example_end(1));
    };
    ends("job", "other");
    EXPECT_FALSE((*bench.open(folder / "job"))->follows_end());
    // Its own folder beside that of the other, which runs now: without an end, and with one.
    std::filesystem::remove_all(folder / "job");
    LedgerEntry running = example_entry(0);
    running.command_digest = "other";
    bench.create(**bench.open(folder / "job", Bench::owner("other")), running);
    EXPECT_FALSE((*bench.open(folder / "job"))->follows_end());
    ends("job", "abc123");
    EXPECT_TRUE((*bench.open(folder / "job"))->follows_end());
}

// Both jobs begin at the same moment, before there is any entry. The command in the claim separates
// them.
TEST(LedgerDirectory, TwoCommandsPartBeforeTheFirstEntry) {
    Bench bench;
    const Folder folder;
    const auto first = bench.open(folder / "job"),
               second = bench.open(folder / "job", Bench::owner("other"));
    EXPECT_EQ(bench.create(**first, example_entry(0, 1)).outcome, Outcome::won);
    EXPECT_EQ(bench.create(**second, example_entry(0, 2)).outcome, Outcome::won);
}

// A slow process has seen the finished ledger and moves it aside too late: another process has done
// so and has begun a new one. The new one must stay, in each stage of its beginning.
TEST(LedgerDirectory, WhoComesLateSetsNothingAside) {
    Bench bench;
    const Folder folder;
    const std::uint64_t finished = (*bench.open(folder / "job"))->mark();
    const auto moved = move_aside(folder / "job", "finished", finished);
    ASSERT_TRUE(moved && *moved) << "the first one moves it";
    const auto late = [&] { return move_aside(folder / "job", "finished", finished); };
    // Three stages of the new folder: it does not exist yet, it is empty, it has a claim.
    const auto nothing_there = late();
    EXPECT_TRUE(nothing_there && !*nothing_there);
    std::filesystem::create_directory(folder / "job");
    const auto without_claim = late();
    EXPECT_TRUE(without_claim && !*without_claim);
    const auto fresh = bench.open(folder / "job");
    const auto begun = late();
    EXPECT_TRUE(begun && !*begun);
    // Both ledgers are whole.
    EXPECT_EQ(bench.create(**fresh, example_entry(0)).outcome, Outcome::won);
    EXPECT_EQ(read_claim(**moved)->mark, finished);
}

// All nodes of a new job start at once where a finished ledger lies. It is set aside once, and all
// agree on one new ledger.
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

// A dead disk has cut an entry. A job that begins refuses such a ledger, since somebody may rely on
// it. So does one that Slurm has requeued: its earlier allocation may still train.
TEST(LedgerDirectory, ACutEntryIsRefused) {
    Bench bench;
    const Folder folder;
    const auto ledger = bench.open(folder / "job");
    bench.create(**ledger, example_entry(0));
    // A file without content, as some file systems leave it after a crash.
    std::ofstream(folder / "job/entry-000001.json") << "";
    for (const int requeue : {0, 1, 2}) {
        const auto refused = bench.open(folder / "job", Bench::owner("abc123", requeue));
        EXPECT_EQ(refused.error().code(), ErrorCode::malformed);
        EXPECT_THAT(refused.error().sentence(), HasSubstr("entry-000001.json is truncated"));
    }
    EXPECT_THAT(names(folder / ""), ElementsAre("job"));
}

// Somebody has removed an entry. A leader must neither take the one before it for the newest, nor
// write another one in its place: two generations would have the same number.
TEST(LedgerDirectory, AnEntryThatVanishesIsNoticed) {
    Bench bench;
    const Folder folder;
    const auto ledger = bench.open(folder / "job");
    for (int number = 0; number < 3; ++number)
        ASSERT_EQ(bench.create(**ledger, example_entry(number)).outcome, Outcome::won);
    std::filesystem::rename(folder / "job/entry-000001.json", folder / "moved");
    const auto read = bench.read(**ledger, 0);
    ASSERT_FALSE(read);
    EXPECT_THAT(read.error().sentence(),
                HasSubstr("job/entry-000001.json has vanished, but entry-000002.json is there"));
    const auto below = bench.create(**ledger, example_entry(1, 77));
    EXPECT_EQ(below.outcome, Outcome::failed);
    EXPECT_THAT(below.sentence, HasSubstr("entry-000001.json has vanished"));
    EXPECT_EQ(bench.open(folder / "job", Bench::owner("abc123", 2)).error().code(),
              ErrorCode::malformed);
    // The newest one is missing. A read cannot know that, but who builds on it does.
    std::filesystem::rename(folder / "moved", folder / "job/entry-000001.json");
    EXPECT_EQ(bench.read(**ledger, 0)->size(), 3u);
    std::filesystem::remove(folder / "job/entry-000002.json");
    const auto next = bench.create(**ledger, example_entry(3));
    EXPECT_EQ(next.outcome, Outcome::failed);
    EXPECT_THAT(next.sentence, HasSubstr("entry-000002.json has vanished"));
}

// The entry of an allocation is found by a look, in every kind of ledger that lasts. In a folder it
// is found by a file that exists from the beginning and is never replaced: the i-node that the look
// of an older leader has opened once stays the same, whatever its client remembers of names.
TEST(LedgerDirectory, ShowsANewerAllocation) {
    Bench bench;
    const Folder folder;
    const auto ledger = bench.open(folder / "job");
    const std::string file = folder / "job/allocation";
    struct stat before {
    }, after{};
    ASSERT_EQ(::stat(file.c_str(), &before), 0);
    shows_newer_allocations(bench, **ledger);
    ASSERT_EQ(::stat(file.c_str(), &after), 0);
    EXPECT_EQ(before.st_ino, after.st_ino);
    // A text that a crash has cut is no answer; the next allocation writes it anew.
    std::ofstream(file) << "00000";
    EXPECT_EQ(bench.look(**ledger, 2).error().code(), ErrorCode::malformed);
    bench.create(**ledger, example_allocation(5, 7));
    EXPECT_EQ(*bench.look(**ledger, 2), 7);
    // The ledger of an older ddprun has no such file.
    std::filesystem::remove(file);
    EXPECT_EQ(*bench.look(**ledger, 2), -1);
}

// A node that may lead later opens the ledger of the running job, by its mark, or none. Looking
// begins nothing and moves nothing. A folder on a local disk is the usual mistake, so the sentence
// says that all nodes must share it.
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

// PATH belongs to another job, so the leader's ledger lies beside it, under the digest of the
// leader's command. The follower has a third command (its options may differ) and must find it all
// the same.
TEST(LedgerDirectory, ASuccessorFindsTheOneBeside) {
    Bench bench;
    const Folder folder;
    const LedgerPlace place{LedgerPlace::Kind::directory, folder / "job", {}};
    // The other job, which has PATH itself.
    ASSERT_TRUE(bench.open(place, Bench::owner("first")));
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

// Somebody deletes or replaces the folder under a running job. It is neither read nor written any
// more: another job's ledger may stand there now, and an entry in it would mix two jobs.
TEST(LedgerDirectory, NoticesThatItsFolderIsGone) {
    Bench bench;
    const Folder folder;
    const auto ledger = bench.open(folder / "job");
    std::filesystem::rename(folder / "job", folder / "elsewhere");
    const auto gone = bench.create(**ledger, example_entry(0));
    EXPECT_EQ(gone.outcome, Outcome::failed);
    EXPECT_THAT(gone.sentence,
                HasSubstr("job no longer belongs to this job: it was deleted or replaced"));
    // Another job begins its ledger at this path.
    const auto others = bench.open(folder / "job");
    EXPECT_EQ(bench.create(**ledger, example_entry(0)).outcome, Outcome::failed);
    EXPECT_TRUE(bench.read(**others, 0)->empty());
    bench.create(**others, example_entry(0));
    EXPECT_THAT(bench.read(**ledger, 0).error().sentence(), HasSubstr("no longer belongs to this"));
    // The folder comes back, and the job goes on with it.
    std::filesystem::remove_all(folder / "job");
    std::filesystem::rename(folder / "elsewhere", folder / "job");
    EXPECT_EQ(bench.create(**ledger, example_entry(0)).outcome, Outcome::won) << "back again";
}

// The folder is exchanged with another job's between any two system calls of a writer. Nothing of
// ours is ever in the other folder, nor read from there. A writer that opens files by their full
// path fails here.
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
    // RENAME_EXCHANGE swaps both folders in one step, so that one of them always has the name.
    std::thread swapping([&] {
        while (!over) ::renameat2(AT_FDCWD, job.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE);
    });
    // 20 entries, so that the exchange meets many different steps of a create.
    int won = 0;
    EXPECT_TRUE(comes_true([&] {
        won += create_entry(job, ours, example_entry(won)).outcome == Outcome::won;
        const auto read = read_entries(job, ours, EntryNumber{0});
        EXPECT_THAT(read.whole, testing::Not(testing::Contains(of_theirs)));
        return won == 20 || testing::Test::HasFailure();
    }));
    over = true;
    swapping.join();
    // At the end either folder may have the name.
    const bool swapped = read_claim(job)->mark == theirs;
    EXPECT_THAT(names(swapped ? job : other),
                ElementsAre("allocation", "entry-000000.json", "ledger.json"));
}

// The client of a network file system repeats a request: the first one did the work, the second one
// says "exists". Reading tells whose entry it is. The same with an old read: a node that misses the
// newest entry collides with it when it creates.
TEST(LedgerDirectory, Rule25a_ExistsIsAnsweredByReading) {
    Bench bench;
    const Folder folder;
    const auto mine = bench.open(folder / "job"), others = bench.open(folder / "job");
    bench.create(**mine, example_entry(0, 1));
    EXPECT_EQ(bench.create(**mine, example_entry(0, 1)).outcome, Outcome::won);
    // The other node sees entry 0 only.
    const auto stale = *bench.read(**others, 0);
    bench.create(**mine, example_entry(1, 2));
    const auto collided = bench.create(**others, example_entry(static_cast<int>(stale.size()), 3));
    EXPECT_EQ(collided.outcome, Outcome::lost);
    EXPECT_EQ(collided.entry, example_entry(1, 2));
}

// A claim that lacks its command is refused by name.
TEST(LedgerDirectory, NamesAClaimWrittenByHand) {
    Bench bench;
    const Folder folder;
    std::filesystem::create_directory(folder / "job");
    std::ofstream(folder / "job/ledger.json") << R"({"format": "ddprun ledger 1", "mark": "0"})";
    EXPECT_THAT(bench.open(folder / "job").error().sentence(), HasSubstr("job/ledger.json lacks"));
}

// A writer that died leaves its temporary file. The next opening removes it if it is above ten
// minutes old. A younger one may belong to a writer that lives.
TEST(LedgerDirectory, RemovesTemporariesOfTheDead) {
    Bench bench;
    const Folder folder;
    std::filesystem::create_directory(folder / "job");
    std::ofstream(folder / "job/.writing-1-2") << "half";
    std::ofstream(folder / "job/.writing-3-4") << "just now";
    // Above the ten minutes by one.
    std::filesystem::last_write_time(
        folder / "job/.writing-1-2",
        std::filesystem::file_time_type::clock::now() - std::chrono::minutes{11});
    ASSERT_TRUE(bench.open(folder / "job"));
    EXPECT_THAT(names(folder / "job"), ElementsAre(".writing-3-4", "allocation", "ledger.json"));
}

// The ledger goes while the file thread still works for it. Its answer is dropped.
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

// Which temporary folders of dead ddpruns are removed, and above all which ones stay. /tmp belongs
// to many, so a folder too many must never go.
#include "agent/output/temporary_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "agent/output/attempt_names.h"
#include "tests/agent/output/output_rig.h"

using namespace ddprun::agent;

namespace {

struct TemporaryFolderTest : testing::Test {
    Rig rig;
    // A folder with a file in it, last changed `age` seconds ago. Nobody holds its lock, as after
    // SIGKILL.
    std::string make(const std::string& name, std::time_t age) {
        std::filesystem::create_directory(rig.path(name));
        std::ofstream(rig.path(name) + "/file") << "bytes";
        return grow_old(rig.path(name), age);
    }
    std::string grow_old(const std::string& path, std::time_t age) {
        const timespec times[2] = {{::time(nullptr) - age, 0}, {::time(nullptr) - age, 0}};
        EXPECT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
        return path;
    }
    static bool there(const std::string& path) { return std::filesystem::exists(path); }
    // What a ddprun sees whose own folder is here.
    OthersFolders look() const { return look_beside({rig.path("ddprun_myself"), {}}); }
};

}  // namespace

// Slurm kills ddprun and keeper at the same moment, so nobody removes their folder. A later ddprun
// does. An hour of age is far beyond the minute for which a folder without lock is left alone.
TEST_F(TemporaryFolderTest, OneThatNobodyHoldsIsRemoved) {
    const std::string dead = rig.path("ddprun_abcdef");
    std::filesystem::create_directory(dead);
    grow_old(dead, 3600);
    const TemporaryFolder gone = make_temporary_folder(rig.folder);
    {
        const TemporaryFolder ended = make_temporary_folder(rig.folder);
        // This folder is old and held: a job may run for days without a change in its folder.
        grow_old(ended.path, 3600);
        EXPECT_EQ(look().held.size(), 2U);
        EXPECT_TRUE(there(ended.path)) << "it is held";
    }
    EXPECT_FALSE(there(dead));
    // `ended` has been let go, so its folder is abandoned now. `gone` is new and still held.
    EXPECT_EQ(look().held, std::vector{gone.path});
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(rig.folder), {}), 1);
    EXPECT_TRUE(there(gone.path));
}

// One with a record is given back, however young it is: processes may be left. As long as somebody
// has it, nobody else gets it.
TEST_F(TemporaryFolderTest, OneWithARecordIsGivenBack) {
    std::string path;
    {
        const TemporaryFolder held = make_temporary_folder(rig.folder);
        path = held.path;
        record_origin(held, "who");
        EXPECT_TRUE(look().abandoned.empty()) << "it is held";
        // Its owner may just be dying, so it is looked at again.
        EXPECT_EQ(look().held, std::vector{path});
    }
    {
        const OthersFolders found = look_at_folders({path});
        ASSERT_EQ(found.abandoned.size(), 1U);
        EXPECT_EQ(found.abandoned[0].path, path);
        EXPECT_EQ(found.abandoned[0].origin, "who");
        EXPECT_TRUE(look().abandoned.empty()) << "somebody ends its processes";
    }
    EXPECT_EQ(look().abandoned.size(), 1U);
    EXPECT_TRUE(there(path));
}

// What a start costs must not grow with what others have left.
TEST_F(TemporaryFolderTest, OfManyOnlySomeAreLookedAt) {
    std::vector<TemporaryFolder> held;
    for (int i = 0; i < 70; ++i) held.push_back(make_temporary_folder(rig.folder));
    EXPECT_EQ(look().held.size(), 64U);
}

// One's own is not among them, nor one that has gone in the meantime.
// The keeper removes the folder with the name that was drawn, so another's must never be taken.
TEST_F(TemporaryFolderTest, TheNameIsTheDrawnOneUnlessTaken) {
    const std::string name = draw_temporary_name();
    EXPECT_EQ(name.size(), std::string(kTemporaryFolder).size());
    EXPECT_NE(name, draw_temporary_name());
    EXPECT_EQ(make_temporary_folder(rig.folder, name).path, rig.path(name));
    const std::string another = make_temporary_folder(rig.folder, name).path;
    EXPECT_TRUE(another != rig.path(name) && there(another));
    EXPECT_EQ(make_temporary_folder(rig.path("none"), name).path, "");
    EXPECT_EQ(errno, ENOENT);
}

TEST_F(TemporaryFolderTest, OnesOwnIsNotLookedAt) {
    const TemporaryFolder own = make_temporary_folder(rig.folder);
    record_origin(own, "me");
    EXPECT_TRUE(look_beside(own).held.empty());
    EXPECT_TRUE(look_at_folders({rig.path("ddprun_isgone")}).held.empty());
}

// Other names, a folder that is only 10 s old (its owner may not have locked it yet), a file, and a
// link. Nothing of it goes, nor what the link points to.
TEST_F(TemporaryFolderTest, WhatIsNewOrOfOthersStays) {
    for (const char* name : {"ddprun_abcdefg", "ddprun_", "ddprun-abcdef", "mine"})
        make(name, 3600);
    make("ddprun_newone", 10);
    // A folder of the user, which only looks like one of ours by its name.
    make("ddprun_backup", 3600);
    std::ofstream(rig.path("ddprun_isfile")) << "bytes";
    grow_old(rig.path("ddprun_isfile"), 3600);
    std::filesystem::create_directory_symlink(rig.path("mine"), rig.path("ddprun_linked"));
    look();
    look_beside({rig.path("there-is-none/ddprun_myself"), {}});
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(rig.folder), {}), 8);
    EXPECT_TRUE(there(rig.path("ddprun_backup") + "/file"));
    EXPECT_TRUE(there(rig.path("mine") + "/file"));
}

// /proc has no room at all, and a folder that does not exist neither. They come last, in the order
// in which they were given.
TEST_F(TemporaryFolderTest, TheFileSystemWithRoomWins) {
    using Names = std::vector<std::string>;
    EXPECT_EQ(by_room({"/proc", "/no/such", rig.folder}), (Names{rig.folder, "/proc", "/no/such"}));
    EXPECT_EQ(by_room({rig.folder, "/proc"}), (Names{rig.folder, "/proc"}));
    EXPECT_EQ(by_room({"/no/such", "/proc"}), (Names{"/no/such", "/proc"}));
}

// What remove_folder() removes, and above all what it never reaches.
#include "base/system/remove_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/system/unique_fd.h"

namespace ddprun {
namespace {

namespace fs = std::filesystem;

class RemoveFolderTest : public testing::Test {
  protected:
    RemoveFolderTest() {
        fs::create_directories(folder_ + "/ours/inner/deep");
        fs::create_directories(folder_ + "/precious");
        for (const char* file : {"/ours/a", "/ours/inner/deep/b", "/precious/c"})
            std::ofstream(folder_ + file) << "bytes";
    }
    ~RemoveFolderTest() override { fs::remove_all(folder_); }
    bool there(const std::string& name) { return fs::exists(folder_ + name); }

    std::string folder_ = fs::path(testing::TempDir()) / ("remove." + std::to_string(::getpid()));
};

TEST_F(RemoveFolderTest, AllInItGoes) {
    fs::create_directories(folder_ + "/ours/empty");
    fs::create_symlink("nowhere", folder_ + "/ours/dangling");
    remove_folder(folder_ + "/ours");
    EXPECT_FALSE(there("/ours"));
    EXPECT_TRUE(there("/precious/c"));
}

// A link inside goes, and what it points to stays.
TEST_F(RemoveFolderTest, NoLinkIsFollowed) {
    fs::create_directory_symlink(folder_ + "/precious", folder_ + "/ours/inner/link");
    remove_folder(folder_ + "/ours");
    EXPECT_FALSE(there("/ours"));
    EXPECT_TRUE(there("/precious/c"));
    fs::create_directory_symlink(folder_ + "/precious", folder_ + "/ours");
    remove_folder(folder_ + "/ours");
    EXPECT_TRUE(there("/precious/c"));
    EXPECT_TRUE(fs::is_symlink(folder_ + "/ours"));
}

// Somebody has put another folder in its place.
TEST_F(RemoveFolderTest, OnlyTheFolderThatWasMadeGoes) {
    const UniqueFd made(::open((folder_ + "/ours").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    fs::rename(folder_ + "/ours", folder_ + "/elsewhere");
    fs::rename(folder_ + "/precious", folder_ + "/ours");
    remove_folder(folder_ + "/ours", made.get());
    EXPECT_TRUE(there("/ours/c"));
    remove_folder(folder_ + "/elsewhere", made.get());
    EXPECT_FALSE(there("/elsewhere"));
}

TEST_F(RemoveFolderTest, FolderOfAnotherUserStays) {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
    ASSERT_EQ(::chown((folder_ + "/ours/inner").c_str(), 12345, 12345), 0);
    remove_folder(folder_ + "/ours");
    EXPECT_FALSE(there("/ours/a"));
    EXPECT_TRUE(there("/ours/inner/deep/b"));
}

}  // namespace
}  // namespace ddprun

// Files that hold a secret, on a real file system: they are read only if nobody else can read or
// change them, and created once.
#include "base/system/private_file.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "tests/support/loop.h"

namespace ddprun {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// chmod() sets the mode after the write, because the mode at creation depends on the umask.
std::string write(const std::string& path, const std::string& text, mode_t mode) {
    std::ofstream(path) << text;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
}

// An editor adds a line end, on Windows two characters. Nodes that keep it would have another
// secret than the rest.
TEST(PrivateFile, IsReadWithoutTheLinesEnd) {
    Folder folder;
    const auto path = write(folder / "secret", "swordfish\r\n", 0600);
    EXPECT_EQ(*read_private_file(path, Links::refuse), SecretText("swordfish"));
}

// Each of these bits lets somebody else in. The sentence begins with the path and ends with the
// command that mends it.
TEST(PrivateFile, IsRefusedWhenOthersMayReadOrChangeIt) {
    Folder folder;
    for (const mode_t others : {0040, 0020, 0004, 0002, 0644, 0666}) {
        const auto path = write(folder / "secret", "swordfish", 0600 | others);
        const auto read = read_private_file(path, Links::refuse);
        ASSERT_FALSE(read) << others;
        EXPECT_EQ(read.error().code(), ErrorCode::refused);
        EXPECT_THAT(read.error().sentence(), StartsWith(path));
        EXPECT_THAT(read.error().sentence(), HasSubstr("chmod 600 " + path));
    }
}

// In a shared folder another user may have put a file under the expected name, with a secret that
// this user knows.
TEST(PrivateFile, IsRefusedWhenAnotherUserMadeIt) {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a file away";
    Folder folder;
    const auto path = write(folder / "secret", "swordfish", 0600);
    ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);  // nobody
    EXPECT_THAT(read_private_file(path, Links::refuse).error().sentence(),
                HasSubstr("belongs to user 65534"));
}

// A link, a FIFO and a large file are all the wrong file. The open of a FIFO must not wait for a
// writer, because ddprun would hang before its first line of output.
TEST(PrivateFile, IsRefusedWhenItIsNoFile) {
    Folder folder;
    const auto target = write(folder / "target", "swordfish", 0600);
    ASSERT_EQ(::symlink(target.c_str(), (folder / "link").c_str()), 0);
    EXPECT_EQ(read_private_file(folder / "link", Links::refuse).error().code(), ErrorCode::refused);
    EXPECT_EQ(*read_private_file(folder / "link", Links::follow), SecretText("swordfish"));
    // Also with links allowed: `follow` is about links only.
    ASSERT_EQ(::mkfifo((folder / "fifo").c_str(), 0600), 0);
    EXPECT_THAT(read_private_file(folder / "fifo", Links::follow).error().sentence(),
                HasSubstr("is not a file"));
    EXPECT_EQ(read_private_file(folder / "missing", Links::follow).error().code(),
              ErrorCode::not_found);
    EXPECT_THAT(
        read_private_file(write(folder / "long", std::string(1025, 'x'), 0600), Links::follow)
            .error()
            .sentence(),
        HasSubstr("1025 bytes (limit 1024)"));
}

// All nodes of a job may create the secret at the same time. One wins, the others learn that it
// exists and read it. No temporary file stays behind.
TEST(PrivateFile, IsMadeOnceForUsAlone) {
    Folder folder;
    const std::string path = folder / "secret";
    // With umask 0 nothing but the call itself protects the file. read_private_file() below would
    // refuse a wrong mode.
    const mode_t mask = ::umask(0);
    EXPECT_TRUE(create_private_file(path, "first"));
    ::umask(mask);
    EXPECT_EQ(create_private_file(path, "second").error().code(), ErrorCode::exists);
    EXPECT_EQ(*read_private_file(path, Links::refuse), SecretText("first"));
    int files = 0;
    for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator(folder / ""))
        ++files;
    EXPECT_EQ(files, 1);
    // A missing folder is another error than an existing file: here reading it would not help.
    EXPECT_EQ(create_private_file(folder / "missing/secret", "x").error().code(),
              ErrorCode::unavailable);
}

}  // namespace
}  // namespace ddprun

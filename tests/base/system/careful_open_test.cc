// Opening files in a folder into which a worker may write. A FIFO under the name of the stop file
// once stopped the file thread for ten seconds: open() waited for a reader.
#include "base/system/careful_open.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "tests/support/loop.h"

namespace ddprun {
namespace {

std::string content(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

// A folder with everything that is no regular file, each under a name of its own.
struct Traps {
    Traps() {
        EXPECT_EQ(::mkfifo((folder / "fifo").c_str(), 0600), 0);
        EXPECT_EQ(::mkdir((folder / "folder").c_str(), 0700), 0);
        std::ofstream(folder / "target") << "kept";
        EXPECT_EQ(::symlink((folder / "target").c_str(), (folder / "link").c_str()), 0);
        EXPECT_EQ(::symlink((folder / "fifo").c_str(), (folder / "link_to_fifo").c_str()), 0);
        sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
        (folder / "socket").copy(address.sun_path, sizeof address.sun_path - 1);
        EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    }
    static constexpr const char* kNames[] = {"fifo", "folder", "link", "link_to_fifo", "socket"};
    Folder folder{"/tmp/"};  // a socket's path must be short
    UniqueFd socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
};

TEST(CarefulOpen, ReadsAndAppendsToRegularFilesOnly) {
    Traps traps;
    for (const std::string name : Traps::kNames) {
        const auto read = open_to_read(traps.folder / name);
        const auto append = open_to_append(traps.folder / name);
        ASSERT_FALSE(read || append) << name;
        EXPECT_EQ(read.error().code(), ErrorCode::refused) << name;
        EXPECT_FALSE(append.error().sentence().empty()) << name;
    }
    EXPECT_EQ(open_to_read(traps.folder / "nothing").error().code(), ErrorCode::not_found);
    EXPECT_TRUE(open_to_read(traps.folder / "target"));
    const auto file = open_to_append(traps.folder / "target");
    ASSERT_TRUE(file);
    EXPECT_EQ(::write(file->get(), "!", 1), 1);
    EXPECT_EQ(content(traps.folder / "target"), "kept!");
}

// A process that holds the FIFO's other end makes open() succeed: it is refused all the same.
TEST(CarefulOpen, RefusesAFifoThatHasAReader) {
    Traps traps;
    const UniqueFd reader(::open((traps.folder / "fifo").c_str(), O_RDONLY | O_NONBLOCK));
    EXPECT_EQ(open_to_append(traps.folder / "fifo").error().code(), ErrorCode::refused);
}

TEST(CarefulOpen, OpensFoldersOnly) {
    Traps traps;
    for (const std::string name : {"fifo", "link", "target", "socket"})
        EXPECT_FALSE(open_folder(traps.folder / name)) << name;
    EXPECT_TRUE(open_folder(traps.folder / "folder"));
}

// A FIFO or a link gives way to the file; what a link leads to is left as it is. A folder cannot be
// replaced. Nothing unfinished is left.
TEST(CarefulOpen, ReplacesWhateverHasTheName) {
    Traps traps;
    for (const std::string name : {"fifo", "link", "link_to_fifo", "socket", "new"}) {
        EXPECT_TRUE(replace_file(traps.folder / name, "text of " + name)) << name;
        EXPECT_EQ(content(traps.folder / name), "text of " + name);
    }
    EXPECT_EQ(content(traps.folder / "target"), "kept");
    EXPECT_EQ(replace_file(traps.folder / "folder", "").error().sentence(), "Is a directory");
    int files = 0;
    for ([[maybe_unused]] const auto& entry :
         std::filesystem::directory_iterator(traps.folder / "."))
        ++files;
    EXPECT_EQ(files, 7) << "the six names of the traps, and \"new\"";
}

// Timers of torchrun: an old FIFO is replaced, a file of the user is not.
TEST(CarefulOpen, MakesAFifoInThePlaceOfAnOldOne) {
    Traps traps;
    const auto fifo = make_fifo(traps.folder / "fifo");
    ASSERT_TRUE(fifo);
    char byte = 0;
    EXPECT_EQ(::read(fifo->get(), &byte, 1), -1) << "no end is reported without writers";
    EXPECT_EQ(errno, EAGAIN);
    for (const std::string name : {"target", "link", "folder", "socket"})
        EXPECT_EQ(make_fifo(traps.folder / name).error().code(), ErrorCode::refused) << name;
    EXPECT_EQ(content(traps.folder / "target"), "kept");
}

}  // namespace
}  // namespace ddprun

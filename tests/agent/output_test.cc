// Real pipes into a console that is a pipe, a file, slow, or closed.
#include "agent/output.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "tests/agent/keeper_bench.h"

using namespace ddprun;
using namespace ddprun::agent;

namespace {

std::string slurp(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream all;
    all << file.rdbuf();
    return all.str();
}

struct Rig {
    boost::asio::io_context io;
    std::string folder;
    std::vector<Error> errors;
    std::function<void(Error)> report = [this](Error error) { errors.push_back(std::move(error)); };

    Rig() {
        ::signal(SIGPIPE, SIG_IGN);
        char name[] = "/tmp/ddprun-output-XXXXXX";
        folder = ::mkdtemp(name);
    }
    ~Rig() {
        for (const char* file : {"console", "out", "err"}) ::unlink((folder + "/" + file).c_str());
        ::rmdir(folder.c_str());
    }
    UniqueFd file() {
        return UniqueFd(::open((folder + "/console").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    }
    void run() {
        io.restart();
        io.poll();
    }
    // Feeds bytes to a pipe of a worker, reading on the loop in between.
    void feed(int fd, std::string_view bytes) {
        ::fcntl(fd, F_SETFL, O_NONBLOCK);
        const Time give_up = boot_now() + std::chrono::seconds{30};
        while (!bytes.empty() && boot_now() < give_up) {
            const ssize_t n = ::write(fd, bytes.data(), bytes.size());
            if (n > 0) bytes.remove_prefix(static_cast<std::size_t>(n));
            run();
        }
        EXPECT_TRUE(bytes.empty());
    }
};

}  // namespace

// Two ranks on one console, in pieces, one line of 10 MB among them: no line is torn.
TEST(Output, LinesOfTwoRanksAreNeverTorn) {
    Rig rig;
    const UniqueFd file = rig.file();
    Console console(rig.io, file.get(), "stdout", rig.report);
    WorkerOutput zero(rig.io, {console_prefix("default", 0), {&console, ""}, {&console, ""}},
                      rig.report);
    WorkerOutput one(rig.io, {console_prefix("default", 1), {&console, ""}, {&console, ""}},
                     rig.report);
    auto zeros = zero.open(), ones = one.open();
    ASSERT_TRUE(zeros && ones);
    const std::string piece(1 << 20, 'a');
    for (int i = 0; i < 10; ++i) {
        rig.feed(zeros->out.get(), piece);
        rig.feed(ones->out.get(), "short " + std::to_string(i) + "\n");
    }
    rig.feed(zeros->out.get(), "\n");
    rig.feed(zeros->err.get(), std::string("bin\0\xff\n", 6));
    rig.feed(ones->err.get(), "unfinished");
    rig.run();
    zero.finish();
    one.finish();
    std::string expected;
    for (int i = 0; i < 10; ++i) expected += "[default1]:short " + std::to_string(i) + "\n";
    expected += "[default0]:";
    for (int i = 0; i < 10; ++i) expected += piece;
    expected += "\n[default0]:" + std::string("bin\0\xff\n", 6) + "[default1]:unfinished\n";
    EXPECT_TRUE(slurp(rig.folder + "/console") == expected);
    EXPECT_EQ(one.tail().back(), "unfinished");
    EXPECT_TRUE(rig.errors.empty());
}

// One worker: byte for byte, and the files as well; an end without a newline stays one.
TEST(Output, OneWorkersBytesPassAsTheyAre) {
    Rig rig;
    const UniqueFd file = rig.file();
    Console console(rig.io, file.get(), "stdout", rig.report);
    OutputConfig config;
    config.out = {&console, rig.folder + "/out"};
    config.err = {nullptr, rig.folder + "/err"};
    WorkerOutput output(rig.io, config, rig.report);
    auto ends = output.open();
    ASSERT_TRUE(ends);
    rig.feed(ends->out.get(), "10%\r20%");
    rig.feed(ends->err.get(), "warning\n");
    EXPECT_EQ(slurp(rig.folder + "/console"), "10%\r20%");  // at once
    output.finish();
    EXPECT_EQ(slurp(rig.folder + "/out"), "10%\r20%");
    EXPECT_EQ(slurp(rig.folder + "/err"), "warning\n");
}

// The worker has exited, a process it left holds the pipe: what was printed comes, and nobody
// waits.
TEST(Output, FinishTakesWhatIsThereAndDoesNotWait) {
    Rig rig;
    const UniqueFd file = rig.file();
    Console console(rig.io, file.get(), "stdout", rig.report);
    WorkerOutput output(rig.io, {"p:", {&console, ""}, {}}, rig.report);
    auto ends = output.open();
    ASSERT_TRUE(ends);
    ASSERT_EQ(::write(ends->out.get(), "last words", 10), 10);
    output.finish();  // ends->out is still open
    EXPECT_EQ(slurp(rig.folder + "/console"), "p:last words\n");
    EXPECT_EQ(::write(ends->out.get(), "x", 1), -1);
}

// Nobody reads the console: the worker goes on until the limit, then waits; all comes when it is
// read.
TEST(Output, ASlowConsoleHoldsUpOnlyBeyondTheLimit) {
    Rig rig;
    Pipe slow;
    Console console(rig.io, slow.in.get(), "stdout", rig.report, 1 << 20);
    WorkerOutput output(rig.io, {"", {&console, ""}, {}}, rig.report);
    auto ends = output.open();
    ASSERT_TRUE(ends);
    const std::string data(1 << 20, 'x');
    rig.feed(ends->out.get(), data);  // within the limit
    ::fcntl(ends->out.get(), F_SETFL, O_NONBLOCK);
    std::size_t total = data.size();
    // On until the pipe stays full: then the loop reads no more for this console.
    for (int full = 0; full < 3;) {
        const ssize_t n = ::write(ends->out.get(), data.data(), 4096);
        if (n > 0)
            total += static_cast<std::size_t>(n), full = 0;
        else
            ++full;
        rig.run();
    }
    EXPECT_LT(total, std::size_t{3} << 20);
    EXPECT_GE(console.waiting(), std::size_t{1} << 20);
    EXPECT_EQ(::fcntl(slow.in.get(), F_GETFL) & O_NONBLOCK, 0);  // others write to it as before
    ends->out.reset();
    std::size_t got = 0;
    ::fcntl(slow.out.get(), F_SETFL, O_NONBLOCK);
    std::string buffer(1 << 16, '\0');
    const Time give_up = boot_now() + std::chrono::seconds{30};
    while (got < total && boot_now() < give_up) {
        const ssize_t n = ::read(slow.out.get(), buffer.data(), buffer.size());
        if (n > 0) got += static_cast<std::size_t>(n);
        rig.run();
    }
    EXPECT_EQ(got, total);
}

TEST(Output, AClosedConsoleIsReportedOnce) {
    for (const bool socket : {false, true}) {
        Rig rig;
        int ends[2];
        ASSERT_EQ(socket ? ::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) : ::pipe(ends), 0);
        const UniqueFd reader(ends[0]), writer(ends[1]);
        Console console(rig.io, writer.get(), "stdout", rig.report);
        console.write("fine\n");
        const_cast<UniqueFd&>(reader).reset();
        for (int i = 0; i < 3; ++i) console.write("lost\n");
        rig.run();
        ASSERT_EQ(rig.errors.size(), 1U);
        EXPECT_EQ(rig.errors[0].code(), ErrorCode::closed);
        EXPECT_EQ(rig.errors[0].sentence(),
                  "cannot write to stdout: Broken pipe; nothing more is written there");
        EXPECT_EQ(console.waiting(), 0U);
    }
}

TEST(Output, AFullDiskIsReportedOnce) {
    Rig rig;
    const UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
    Console console(rig.io, full.get(), "stdout", rig.report);
    for (int i = 0; i < 3; ++i) console.write("lost\n");
    rig.run();
    ASSERT_EQ(rig.errors.size(), 1U);
    EXPECT_EQ(rig.errors[0].code(), ErrorCode::unavailable);
}

TEST(Output, FlushWritesWithoutTheLoop) {
    Rig rig;
    Pipe pipe;
    Console console(rig.io, pipe.in.get(), "stdout", rig.report);
    console.write(std::string(200'000, 'x'));
    EXPECT_FALSE(console.flush(std::chrono::milliseconds{20}));
    std::size_t got = 0;
    std::string buffer(1 << 16, '\0');
    while (console.waiting() > 0) {
        got += static_cast<std::size_t>(
            std::max<ssize_t>(::read(pipe.out.get(), buffer.data(), buffer.size()), 0));
        console.flush(std::chrono::milliseconds{1});
    }
    EXPECT_TRUE(console.flush(std::chrono::seconds{1}));
    EXPECT_GT(got, 100'000U);
}

TEST(Output, AFileThatCannotBeOpenedIsReported) {
    Rig rig;
    WorkerOutput output(rig.io, {"", {nullptr, "/no/such/folder/out"}, {}}, rig.report);
    ASSERT_TRUE(output.open());
    ASSERT_EQ(rig.errors.size(), 1U);
}

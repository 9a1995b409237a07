// Makes the folders and files of a generation, on the file thread.
#include "agent/output/attempt_folder.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "agent/output/attempt_names.h"
#include "agent/output/temporary_folder.h"
#include "base/system/random_bytes.h"

namespace ddprun::agent {
namespace {

namespace fs = std::filesystem;

// Eight characters in the style of Python's tempfile. torchrun names its log folders this way.
std::string random_name() {
    constexpr std::string_view kCharacters = "abcdefghijklmnopqrstuvwxyz0123456789_";
    std::string name = random_bytes(8);
    for (char& c : name) c = kCharacters[static_cast<unsigned char>(c) % kCharacters.size()];
    return name;
}

}  // namespace

// /dev/shm first: it is in memory, and making folders there is much faster than on a disk.
std::vector<std::string> temporary_parents() {
    const char* named = std::getenv("TMPDIR");
    if (named && *named) return {named};
    return {"/dev/shm", "/tmp"};
}

bool WantedFiles::any() const {
    return filtered != 0 || std::ranges::any_of(streams, [](int bits) { return bits != 0; });
}

// The part that runs on the file thread. It keeps the folders that exist already.
struct AttemptFolder::Maker {
    std::string log_dir, run_id;
    std::string base, temporary;  // empty until they are made
    UniqueFd lock;                // shows others that `temporary` is in use

    AttemptFiles make(Generation generation, const WantedFiles& wanted);
    Result<> make_base();
    Result<> make_temporary();
    void fill(AttemptFiles& made, const std::string& base, Generation generation,
              const WantedFiles& wanted);
};

// Makes the folder of this ddprun inside the log folder, once.
Result<> AttemptFolder::Maker::make_base() {
    if (!base.empty()) return {};
    std::error_code error;
    fs::create_directories(log_dir, error);
    for (int tries = 0; !error && tries < 100; ++tries) {
        const std::string name =
            fs::absolute(log_dir).string() + "/" + run_folder(run_id, random_name());
        // mkdir() fails if the name exists, so two ddpruns never share a folder. On a collision
        // another random name is tried.
        if (::mkdir(name.c_str(), 0700) == 0) {
            base = name;
            return {};
        }
        if (errno != EEXIST) error.assign(errno, std::system_category());
    }
    return Error(ErrorCode::unavailable, "folder " + log_dir + " (--log-dir): " + error.message());
}

// Takes the first parent folder in which a temporary folder can be made.
Result<> AttemptFolder::Maker::make_temporary() {
    if (!temporary.empty()) return {};
    int error = 0;
    for (const std::string& parent : temporary_parents()) {
        if (TemporaryFolder made = make_temporary_folder(parent); !made.path.empty()) {
            temporary = std::move(made.path);
            lock = std::move(made.lock);
            return {};
        }
        error = errno;
    }
    return Error(ErrorCode::unavailable,
                 "folder " + temporary_parents().back() + " (TMPDIR): " + std::strerror(error));
}

AttemptFiles AttemptFolder::Maker::make(Generation generation, const WantedFiles& wanted) {
    AttemptFiles made;
    made.workers.resize(wanted.streams.size());
    if (!log_dir.empty()) {
        if (const auto done = make_base(); !done)
            made.problem = done.error();
        else
            fill(made, base, generation, wanted);
    }
    // Without a usable log folder the workers still need error files, so these go into a temporary
    // folder. The output then goes to the console.
    if (log_dir.empty() || made.folder.empty()) {
        const WantedFiles none{std::vector<int>(wanted.streams.size()), 0, wanted.first_local_rank};
        if (const auto done = make_temporary(); done)
            fill(made, temporary, generation, none);
        else if (!made.problem)
            made.problem = done.error();
    }
    made.base = base;
    made.temporary = temporary;
    return made;
}

// Only the first problem is kept: usually all files fail for one reason, and one line is enough.
void AttemptFolder::Maker::fill(AttemptFiles& made, const std::string& in, Generation generation,
                                const WantedFiles& wanted) {
    const auto note = [&made](const std::string& path, const std::string& why) {
        if (!made.problem) made.problem = Error(ErrorCode::unavailable, path + ": " + why);
    };
    const auto open = [&note](const std::string& path) {
        UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
        if (!file) note("file " + path, std::strerror(errno));
        return file;
    };
    const std::string attempt = attempt_folder(in, generation);
    std::error_code error;
    fs::create_directories(attempt, error);
    if (error) return note("folder " + attempt, error.message());
    for (std::size_t i = 0; i < wanted.streams.size(); ++i) {
        const std::string folder =
            worker_folder(attempt, wanted.first_local_rank + static_cast<int>(i));
        fs::create_directory(folder, error);
        if (error) return note("folder " + folder, error.message());
        made.workers[i].folder = folder;
        made.folder = attempt;
        for (int stream : {0, 1})
            if (wanted.streams[i] & (1 << stream))
                made.workers[i].streams[stream] = open(folder + "/" + kStreamFiles[stream]);
    }
    for (int stream : {0, 1})
        if (wanted.filtered & (1 << stream))
            made.filtered[stream] = open(filtered_file(attempt, stream));
}

AttemptFolder::AttemptFolder(FileThread& files, std::string log_dir, std::string run_id)
    : files_(files),
      stays_(!log_dir.empty()),
      maker_(new Maker{std::move(log_dir), std::move(run_id), {}, {}, {}}) {}

// The last job on the file thread removes the temporary folder, after everything that was posted
// before.
AttemptFolder::~AttemptFolder() {
    files_.post([maker = std::move(maker_)] {
        std::error_code ignored;
        if (!maker->temporary.empty()) fs::remove_all(maker->temporary, ignored);
    });
}

void AttemptFolder::make(Generation generation, WantedFiles wanted, Done done) {
    auto made = std::make_shared<AttemptFiles>();
    // `made` is filled on the file thread and read on the loop afterwards; FileThread's queue
    // orders the two accesses.
    files_.post([made, maker = maker_, generation,
                 wanted = std::move(wanted)] { *made = maker->make(generation, wanted); },
                [made, base = base_, temporary = temporary_, done = std::move(done)] {
                    *base = made->base;
                    *temporary = made->temporary;
                    done(std::move(*made));
                });
    // The first time, folders of dead ddpruns are removed as well. This comes after the folders for
    // our workers, so no worker waits for it.
    if (!std::exchange(first_, false)) return;
    files_.post([maker = maker_] {
        const std::string parent = fs::path(maker->temporary).parent_path();
        if (!parent.empty()) remove_abandoned_folders(parent);
    });
}

}  // namespace ddprun::agent

// Makes the folders and files of a generation, on the file thread.
#include "agent/output/attempt_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "agent/output/attempt_names.h"
#include "agent/output/temporary_folder.h"
#include "base/system/careful_open.h"
#include "base/system/random_bytes.h"
#include "base/system/remove_folder.h"

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

// Makes a folder, with its parents. The caller's umask may take even the owner's rights.
std::error_code make_usable(const std::string& folder) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (!error && ::access(folder.c_str(), R_OK | W_OK | X_OK) != 0)
        fs::permissions(folder, fs::perms::owner_all, fs::perm_options::add, error);
    return error;
}

// Makes the folders of the workers in `in`, and opens the files that are wanted. Returns why a
// folder cannot be made; then none is used. A file that cannot be opened is a problem of its own,
// and only the first one is kept: usually all fail for one reason, and one line is enough.
Result<> fill(AttemptFiles& made, const std::string& in, Generation generation,
              const WantedFiles& wanted) {
    AttemptFiles filled;
    filled.folder = attempt_folder(in, generation);
    std::error_code error;
    const auto failed = [&error](const std::string& folder) {
        return Error(ErrorCode::unavailable, "folder " + folder + ": " + error.message());
    };
    const auto open = [&filled](const std::string& path) {
        auto file = open_to_append(path);
        if (!file && !filled.problem)
            filled.problem =
                Error(ErrorCode::unavailable, "file " + path + " " + file.error().sentence());
        return file ? std::move(*file) : UniqueFd();
    };
    if ((error = make_usable(filled.folder))) return failed(filled.folder);
    for (std::size_t i = 0; i < wanted.streams.size(); ++i) {
        AttemptFiles::Worker& worker = filled.workers.emplace_back();
        worker.folder = worker_folder(filled.folder, wanted.first_local_rank + static_cast<int>(i));
        if ((error = make_usable(worker.folder))) return failed(worker.folder);
        for (int stream : {0, 1})
            if (wanted.streams[i] & (1 << stream))
                worker.streams[stream] = open(worker.folder + "/" + kStreamFiles[stream]);
    }
    for (int stream : {0, 1})
        if (wanted.filtered & (1 << stream))
            filled.filtered[stream] = open(filtered_file(filled.folder, stream));
    made = std::move(filled);
    return {};
}

}  // namespace

// TMPDIR is what the user wants. /dev/shm is in memory, and making folders there is much faster
// than on a disk.
std::vector<std::string> temporary_parents() {
    std::vector<std::string> parents{"/dev/shm", "/tmp"};
    const char* named = std::getenv("TMPDIR");
    if (named && *named) parents.insert(parents.begin(), named);
    return parents;
}

std::vector<std::string> temporary_places(const std::string& name) {
    std::vector<std::string> places = temporary_parents();
    std::error_code ignored;  // without a working directory, a relative TMPDIR means nothing
    for (std::string& place : places) place = fs::absolute(place, ignored).string() + "/" + name;
    return places;
}

bool WantedFiles::any() const {
    return filtered != 0 || std::ranges::any_of(streams, [](int bits) { return bits != 0; });
}

// The part that runs on the file thread. It keeps the folders that exist already.
struct AttemptFolder::Maker {
    std::string log_dir, run_id;
    std::string name;           // of the temporary folder, if it may be chosen
    std::string base;           // empty until it is made
    TemporaryFolder temporary;  // the same
    std::string last;           // of the last generation, in `temporary`
    std::string recorded;       // the temporary folder that has its record
    std::string furnished;      // the one that was furnished

    // What is done when the workers have their folders. `temporary` is empty if nothing is new.
    struct Tidied {
        std::string temporary;
        UniqueFd lock;
        OthersFolders others;
    };
    Tidied tidy(Generation generation, const Heirs& heirs);
    AttemptFiles make(Generation generation, const WantedFiles& wanted, const Heirs& heirs);
    void prepare(const Heirs& heirs);
    Result<> make_base();
    void make_temporary();
    Result<> use_temporary(AttemptFiles& made, Generation generation, const WantedFiles& wanted);
    void remove_past(const std::string& now);
    void remove();
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

// Only error files lie in a temporary folder, no output. If its file system has become full, or has
// no inodes left, another one is taken.
Result<> AttemptFolder::Maker::use_temporary(AttemptFiles& made, Generation generation,
                                             const WantedFiles& wanted) {
    const WantedFiles none{std::vector<int>(wanted.streams.size()), 0, wanted.first_local_rank};
    if (!temporary.path.empty() && fill(made, temporary.path, generation, none)) return {};
    Result<> result;
    for (const std::string& parent : by_room(temporary_parents())) {
        TemporaryFolder folder = make_temporary_folder(parent, name);
        const int code = errno;
        if (folder.path.empty()) {
            result = Error(ErrorCode::unavailable,
                           "folder " + parent + " (TMPDIR): " + std::strerror(code));
            continue;
        }
        remove();
        temporary = std::move(folder);
        result = fill(made, temporary.path, generation, none);
        if (result) break;
    }
    return result;
}

void AttemptFolder::Maker::make_temporary() {
    for (const std::string& parent : by_room(temporary_parents()))
        if (temporary = make_temporary_folder(parent, name); !temporary.path.empty()) return;
}

void AttemptFolder::Maker::prepare(const Heirs& heirs) {
    const auto is_set = [](const auto& furnish) { return furnish != nullptr; };
    if (std::ranges::none_of(heirs.furnish, is_set)) return;
    if (temporary.path.empty()) make_temporary();
    if (std::exchange(furnished, temporary.path) == temporary.path) return;
    for (const auto& furnish : heirs.furnish)
        if (furnish) furnish(temporary.path);
}

AttemptFiles AttemptFolder::Maker::make(Generation generation, const WantedFiles& wanted,
                                        const Heirs& heirs) {
    AttemptFiles made;
    Result<> done;
    if (!log_dir.empty()) {
        done = make_base();
        if (done) done = fill(made, base, generation, wanted);
    }
    // Without a usable log folder the workers still need error files, so these go into a temporary
    // folder. The output then goes to the console.
    if (log_dir.empty() || !done) {
        const Result<> temporary = use_temporary(made, generation, wanted);
        if (done) done = temporary;
    }
    made.workers.resize(wanted.streams.size());
    if (!done) made.problem = done.error();
    prepare(heirs);
    made.base = base;
    made.temporary = this->temporary.path;
    return made;
}

// Everything that the report of the last generation needed has been read before this generation
// began, on this thread.
void AttemptFolder::Maker::remove_past(const std::string& now) {
    const std::string past = std::exchange(last, now);
    if (!past.empty() && past != now) remove_folder(past);
}

// The folder of the last generation goes. For each new temporary folder, one a job as a rule, there
// is more: the record, and the folders of dead ddpruns. With --log-dir the folder holds nothing
// else.
AttemptFolder::Maker::Tidied AttemptFolder::Maker::tidy(Generation generation, const Heirs& heirs) {
    if (temporary.path.empty() && heirs.origin) make_temporary();
    if (temporary.path.empty()) return {};
    remove_past(attempt_folder(temporary.path, generation));
    if (std::exchange(recorded, temporary.path) == temporary.path) return {};
    if (heirs.origin) record_origin(temporary, heirs.origin(base.empty() ? temporary.path : base));
    return {temporary.path, UniqueFd(::fcntl(temporary.lock.get(), F_DUPFD_CLOEXEC, 3)),
            look_beside(temporary)};
}

void AttemptFolder::Maker::remove() {
    if (!temporary.path.empty()) remove_folder(temporary.path, temporary.lock.get());
    temporary = {};
}

AttemptFolder::AttemptFolder(FileThread& files, std::string log_dir, std::string run_id,
                             Heirs heirs)
    : files_(files),
      stays_(!log_dir.empty()),
      maker_(new Maker{std::move(log_dir), std::move(run_id), heirs.name, {}, {}, {}, {}, {}}),
      heirs_(std::make_shared<Heirs>(std::move(heirs))) {}

// The last job on the file thread removes the temporary folder, after everything that was posted
// before.
AttemptFolder::~AttemptFolder() {
    files_.post([maker = std::move(maker_)] { maker->remove(); });
}

void AttemptFolder::make(Generation generation, WantedFiles wanted, Done done) {
    auto made = std::make_shared<AttemptFiles>();
    // `made` is filled on the file thread and read on the loop afterwards; FileThread's queue
    // orders the two accesses.
    files_.post([made, maker = maker_, generation, heirs = heirs_,
                 wanted = std::move(wanted)] { *made = maker->make(generation, wanted, *heirs); },
                [made, base = base_, temporary = temporary_, done = std::move(done)] {
                    *base = made->base;
                    *temporary = made->temporary;
                    done(std::move(*made));
                });
    tidy(generation);
}

void AttemptFolder::prepare(std::function<void()> done) {
    auto made = std::make_shared<std::string>();
    files_.post(
        [made, maker = maker_, heirs = heirs_] {
            maker->prepare(*heirs);
            *made = maker->temporary.path;
        },
        [made, temporary = temporary_, done = std::move(done)] {
            *temporary = *made;
            done();
        });
    tidy(kNoGeneration);
}

// Comes after the folders for our workers, so no worker waits for it.
void AttemptFolder::tidy(Generation generation) {
    auto tidied = std::make_shared<Maker::Tidied>();
    files_.post([tidied, maker = maker_, generation,
                 heirs = heirs_] { *tidied = maker->tidy(generation, *heirs); },
                [tidied, heirs = heirs_, temporary = temporary_, lock = lock_] {
                    if (tidied->temporary.empty()) return;
                    *temporary = tidied->temporary;
                    *lock = std::move(tidied->lock);
                    if (heirs->made) heirs->made();
                    if (heirs->found) heirs->found(std::move(tidied->others));
                });
}

}  // namespace ddprun::agent

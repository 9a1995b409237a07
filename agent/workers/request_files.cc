// Writes the files with requests to workers.
#include "agent/workers/request_files.h"

#include <memory>
#include <utility>

#include "agent/output/attempt_names.h"
#include "base/system/boot_clock.h"
#include "base/system/careful_open.h"

namespace ddprun::agent {
namespace {

// How long the stop may wait for the file system that holds the stop file. After it, the workers
// get the signal without the file.
constexpr auto kStopFileLimit = std::chrono::milliseconds{500};

std::string in(const std::string& folder, const char* name) {
    return folder.empty() ? folder : folder + "/" + name;
}

}  // namespace

std::string RequestFiles::stop_file() const { return in(folder_, kStopFile); }
std::string RequestFiles::snapshot_file() const { return in(folder_, kSnapshotFile); }

void RequestFiles::stop(const StopHint& hint, std::function<void()> done) {
    if (folder_.empty()) return done();
    files_.post_within(
        kStopFileLimit,
        [path = stop_file(), text = to_json(hint, day_now())] { (void)replace_file(path, text); },
        [done = std::move(done)](bool) { done(); });
}

void RequestFiles::ask_snapshot(const SnapshotHint& hint,
                                std::function<void(const Error&)> failed) {
    if (folder_.empty())
        return failed(Error(ErrorCode::unavailable, "there is no folder for the snapshot file"));
    const auto written = std::make_shared<Result<>>();
    files_.post([written, path = snapshot_file(),
                 text = to_json(hint, day_now())] { *written = replace_file(path, text); },
                [written, failed = std::move(failed)] {
                    if (!*written) failed(written->error());
                });
}

}  // namespace ddprun::agent

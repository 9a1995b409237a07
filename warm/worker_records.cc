#include "warm/worker_records.h"

#include <unistd.h>

#include <utility>

#include "base/system/careful_open.h"
#include "base/system/small_file.h"
#include "warm/import_record.h"

namespace ddprun::agent::warm {
namespace {

// A hundred imports, each with the largest environment that is usual.
constexpr std::size_t kMostRecord = std::size_t{16} << 20;

}  // namespace

void WorkerRecords::begin(std::vector<std::string> files) {
    files_.post(
        [old = std::exchange(paths_, std::move(files))] {
            for (const std::string& path : old) ::unlink(path.c_str());
        },
        [] {});
}

// A worker may put anything in their place.
void WorkerRecords::read(std::function<void(bool grew)> done) {
    auto texts = std::make_shared<std::vector<std::string>>();
    files_.post(
        [texts, paths = paths_] {
            for (const std::string& path : paths) {
                const Result<UniqueFd> file = open_to_read(path);
                if (!file) continue;
                std::string text = read_bounded(file->get(), kMostRecord);
                if (!imports_in(text).empty()) texts->push_back(std::move(text));
            }
        },
        [this, texts, paths = paths_, done = std::move(done), alive = std::weak_ptr(alive_)] {
            if (!alive.lock()) return;
            if (texts->empty() || paths != paths_) return done(false);
            const bool grew = has_more(*texts, texts_);
            texts_ = std::move(*texts);
            done(grew);
        });
}

}  // namespace ddprun::agent::warm

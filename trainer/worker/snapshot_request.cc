// Reads and removes the snapshot file.
#include "trainer/worker/snapshot_request.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/system/careful_open.h"

namespace ddprun::trainer {
namespace {

// 0: there is no file, or it holds no request. ddprun writes it whole, in one line.
std::int64_t number_in(const std::string& file) {
    const auto opened = open_to_read(file);
    if (!opened) return 0;
    std::array<char, 4096> text{};
    const ssize_t length = ::read(opened->get(), text.data(), text.size());
    if (length <= 0) return 0;
    const auto json = nlohmann::json::parse(text.data(), text.data() + length, nullptr, false);
    if (!json.is_object() || !json.contains("number") || !json["number"].is_number_integer())
        return 0;
    return json["number"].get<std::int64_t>();
}

}  // namespace

SnapshotRequest SnapshotRequest::from_environment() {
    const char* file = std::getenv("DDPRUN_SNAPSHOT_FILE");
    return SnapshotRequest(file ? file : "");
}

std::int64_t SnapshotRequest::asked() {
    const auto now = std::chrono::steady_clock::now();
    if (!file_.empty() && now >= look_again_) {
        look_again_ = now + std::chrono::milliseconds(100);
        look();
    }
    return seen_ > begun_ ? seen_ : 0;
}

void SnapshotRequest::begun(std::int64_t number) {
    begun_ = std::max(begun_, number);
    if (!file_.empty()) look();
}

// The file of this node may come after all ranks have agreed on its request by that of another.
void SnapshotRequest::look() {
    seen_ = number_in(file_);
    if (seen_ > 0 && seen_ <= begun_) (void)::unlink(file_.c_str());
}

}  // namespace ddprun::trainer

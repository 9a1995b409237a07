// Writes and removes the pointer of a job (pointer_file.h).
#include "launcher/job/pointer_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/system/careful_open.h"
#include "rendezvous/ledger_format/job_pointer.h"
#include "rendezvous/ledger_format/ledger_place.h"

namespace ddprun::launcher {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolder = ".ddprun";

// A folder of somebody else, as in /tmp, is not written into.
bool have_folder() {
    std::error_code ignored;
    fs::create_directory(kFolder, ignored);
    struct stat found {};
    return ::lstat(kFolder, &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == ::geteuid();
}

// One node is enough. Where a rendezvous outside of the job leads, it is the first.
bool is_to_write(const Plan& plan, bool leads) {
    return !plan.check && folder_of(plan.ledger.place).empty() &&
           plan.identity.mode != rendezvous::IdentityMode::none &&
           (leads || plan.node_rank.value_or(-1) == 0);
}

// Where the nodes meet, or operators are answered; 0: not known, or nobody answers.
int port_of(const Plan& plan, const MeetingPoint& point) {
    if (point.leads && point.listener) return point.listener->local_endpoint().port();
    if (meets_nobody(plan) || plan.endpoint.ports.empty()) return 0;
    return plan.endpoint.ports.front();
}

// One that other hosts reach as well, if there is one. Those of IPv6 that begin so are of one link.
std::string host_of(const Plan& plan, const MeetingPoint& point,
                    const std::vector<std::string>& addresses) {
    if (point.address) return *point.address;
    if (!meets_nobody(plan)) return plan.endpoint.host;
    for (const std::string& address : addresses)
        if (!address.starts_with("fe80:") && !address.starts_with("127.") && address != "::1")
            return address;
    return "127.0.0.1";
}

}  // namespace

void PointerFile::write(const MeetingPoint& point, const std::vector<std::string>& addresses,
                        Log log) {
    const int port = port_of(plan_, point);
    if (port <= 0 || !is_to_write(plan_, point.leads)) return;
    const auto place = of_job(rendezvous::in_folder(kFolder), plan_.run_id);
    if (!place) return;
    path_ = place->path + std::string(rendezvous::kPointerSuffix);
    const bool shared = is_shared(plan_.ledger.place);
    const rendezvous::JobPointer pointer{
        plan_.run_id, shared ? to_text(plan_.ledger.place) : std::string(),
        host_of(plan_, point, addresses), static_cast<std::uint16_t>(port)};
    const auto written = std::make_shared<Result<>>();
    files_.post(
        [written, path = *path_, text = to_json(pointer)] {
            *written = have_folder()
                           ? replace_file(path, text)
                           : Error(ErrorCode::refused, "is somebody else's, or no folder");
        },
        [written, path = *path_, log = std::move(log)] {
            if (!*written)
                log({Note::Level::debug, "ddpctl has to be told where to ask this job: " + path +
                                             ": " + written->error().sentence()});
        });
}

void PointerFile::remove(Duration limit) {
    if (!path_) return;
    files_.post([path = fs::path(*path_)] {
        std::error_code ignored;
        fs::remove(path, ignored);
        fs::remove(path.parent_path(), ignored);  // only if it is empty
    });
    files_.drain(limit);
}

}  // namespace ddprun::launcher

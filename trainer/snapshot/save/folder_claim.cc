// The list of the folders to which this process saves.
#include "trainer/snapshot/save/folder_claim.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <set>

namespace ddprun::trainer {
namespace {

struct Claims {
    std::mutex mutex;
    std::set<std::pair<dev_t, ino_t>> places;
};

// Never destroyed: a writer may be a static object of the program, and ends after this.
Claims& claims() {
    static Claims* const all = new Claims;
    return *all;
}

}  // namespace

Result<FolderClaim> FolderClaim::make(const std::string& folder) {
    struct stat found {};
    if (stat(folder.c_str(), &found))
        return Error(ErrorCode::unavailable,
                     "cannot look at the folder " + folder + ": " + std::strerror(errno));
    const Place place{found.st_dev, found.st_ino};
    std::lock_guard lock(claims().mutex);
    if (!claims().places.insert(place).second)
        return usage_error("this program already saves snapshots to " + folder +
                           "; give each SnapshotWriter a folder of its own, for example " + folder +
                           "/best");
    return FolderClaim(place);
}

FolderClaim::~FolderClaim() {
    if (place_ == Place{}) return;
    std::lock_guard lock(claims().mutex);
    claims().places.erase(place_);
}

}  // namespace ddprun::trainer

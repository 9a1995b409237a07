#include "trainer/snapshot/folder/folder_lock.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <sstream>

#include "base/system/write_all.h"
#include "trainer/snapshot/format/durable_file.h"

namespace ddprun::trainer {
namespace {

// What the file says of who holds the folder: "GENERATION PROCESS HOST RUN".
struct Holder {
    Generation generation{0};
    pid_t process = 0;
    std::string host = "?", run_id = "?";
};

Holder this_process(const std::string& run_id, Generation generation) {
    char host[256] = {};
    gethostname(host, sizeof host - 1);
    return {generation, getpid(), host, run_id};
}

std::string text_of_holder(const Holder& holder) {
    return std::to_string(holder.generation.value) + " " + std::to_string(holder.process) + " " +
           holder.host + " " + holder.run_id + "\n";
}

// The defaults for what is missing: it may be about to write, or could not.
Holder read_holder(const std::string& path) {
    Holder holder;
    const auto text = read_text(path);
    std::istringstream words(text ? *text : std::string());
    std::int64_t generation = 0;
    if (!(words >> generation >> holder.process >> holder.host >> std::ws)) return {};
    holder.generation = Generation(generation);
    std::getline(words, holder.run_id);
    return holder;
}

}  // namespace

Result<FolderLock> FolderLock::take(const std::string& folder, const std::string& run_id,
                                    Generation generation) {
    const std::string path = folder + "/in-use";
    UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
    if (!file) return FolderLock();
    const Holder mine = this_process(run_id, generation);
    struct flock whole {};
    whole.l_type = F_WRLCK;
    whole.l_whence = SEEK_SET;
    if (!fcntl(file.get(), F_OFD_SETLK, &whole)) {
        const std::string text = text_of_holder(mine);
        // On a full disk it stays empty, and messages name no run.
        if (!ftruncate(file.get(), 0)) (void)write_all_at(file.get(), text, 0);
        return FolderLock(std::move(file));
    }
    if (errno != EAGAIN && errno != EACCES) return FolderLock();
    const Holder other = read_holder(path);
    // On this host the process is alive; for another one a file server may still hold the lock of a
    // host that was lost.
    const bool ours =
        other.run_id == run_id &&
        (other.generation < generation || other.host != mine.host || other.process == mine.process);
    if (ours) return FolderLock();
    return Error(ErrorCode::refused,
                 "the snapshot folder " + folder + " is in use by run \"" + other.run_id +
                     "\", whose process " + std::to_string(other.process) + " on " + other.host +
                     " is running; give each job a folder of its own, or end that job first");
}

}  // namespace ddprun::trainer

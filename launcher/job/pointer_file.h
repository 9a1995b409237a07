// The file that tells ddpctl where to ask a job whose ledger lies in no folder (job_pointer.h). It
// lies in .ddprun in the working directory, which is made for it, and is removed at the end.
//
// Thread: the loop's; the file system is asked on the file thread, and nobody waits for it. Where
// no file can be made, ddpctl has to be told the address, which is all that is lost.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/loop/file_thread.h"
#include "base/time.h"
#include "launcher/job/meeting_point.h"
#include "launcher/plan/plan.h"

namespace ddprun::launcher {

class PointerFile {
  public:
    // Both must outlive this object.
    PointerFile(FileThread& files, const Plan& plan) : files_(files), plan_(plan) {}

    // If this node is to write it: one that leads at the start, or the first one. A job of one node
    // meets nowhere, so its file names one of its `addresses`, as text.
    void write(const MeetingPoint& point, const std::vector<std::string>& addresses, Log log);
    // If it was written; of a file system that does not answer within `limit` it stays.
    void remove(Duration limit);

  private:
    FileThread& files_;
    const Plan& plan_;
    std::optional<std::string> path_;  // that was to be written
};

}  // namespace ddprun::launcher

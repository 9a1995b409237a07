// Ends what ddpruns of this user have left that were killed together with their keepers, and
// removes their folders. It costs no worker's time: it begins after the first workers have been
// requested, on a thread of its own.
//
// A process that was killed holds the lock of its folder until the kernel has time for its end. So
// who starts ddprun again at once would find a folder whose owner seems to live. Such a folder is
// looked at again, five times within 1.6 s.
//
// Thread: the loop's. Nothing of it is called any more when the object is gone.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/output/temporary_folder.h"
#include "base/loop/file_thread.h"
#include "base/time.h"

namespace ddprun::agent {

class OrphanSearch {
  public:
    // `warn` gets a sentence for each dead ddprun of which processes were left.
    OrphanSearch(boost::asio::io_context& loop,
                 std::function<void(const std::string& sentence)> warn);

    // What was found when this ddprun's own folder was made.
    void begin(OthersFolders found);

  private:
    void heed(OthersFolders found, Duration wait);
    void end_those_of(AbandonedFolder folder);

    // Callbacks look at it, because the thread may outlive this object.
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
    std::function<void(const std::string&)> warn_;
    boost::asio::steady_timer timer_;
    FileThread thread_;  // what a process has in memory may hang when it is read
};

}  // namespace ddprun::agent

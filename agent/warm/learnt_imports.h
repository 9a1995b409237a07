// What is known of the script's imports: what the last job has left (import_memory.h), and what the
// workers of this one record.
//
// Thread: the loop's. Owner: WarmStarts.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/warm/channel.h"
#include "agent/warm/import_list.h"
#include "agent/warm/import_memory.h"
#include "base/loop/file_thread.h"

namespace ddprun::agent::warm {

class LearntImports {
  public:
    // `files`: for the records.
    LearntImports(boost::asio::io_context& loop, FileThread& files, const PythonCommand& command,
                  const std::map<std::string, std::string>& environment);

    // Asks for what the last job has left; a second time where another node may have written it.
    void recall(std::function<void()> done);
    bool recalling() const { return recalling_; }
    // Reads the workers' records and removes them: each generation adds to them.
    void read_records(std::vector<std::string> records, std::function<void()> done);
    void leave_out(const std::string& module) { left_out_.push_back(module); }

    std::size_t size() const { return imports_.imports().size(); }
    // What a server must be told of them; without the first ones, which it has imported.
    Words plan(std::size_t first) const;

    // A server is ready with them. `write`: for the next job; one node does it.
    void proven(bool write);
    // No server can be made with them. Returns whether they came from another job: then only those
    // of this job are left.
    bool forget();
    // The loop is about to end.
    void close() { memory_.close(); }

  private:
    FileThread& files_;
    ImportMemory memory_;
    ImportList imports_, own_;  // all; those of this job
    std::vector<std::string> left_out_;
    bool recalling_ = false, proven_ = false;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ddprun::agent::warm

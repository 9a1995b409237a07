// Where the output of one generation's workers goes: makes the consoles of its files and hands each
// stream its route. What is wrong with the files is told in one line a generation, however many
// there are. Thread: the loop's. Owner: the worker set; what is handed in by reference must outlive
// it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <set>
#include <string>

#include "agent/output/attempt_folder.h"
#include "agent/output/console.h"
#include "agent/output/output.h"
#include "agent/output/output_plan.h"

namespace ddprun::agent {

// What all generations print to.
struct Consoles {
    FileThread& files;
    Console &out, &err;
};

class GenerationOutput {
  public:
    GenerationOutput(boost::asio::io_context& loop, const OutputPlan& plan,
                     const Consoles& consoles, AttemptFiles files, Console::Tell tell);

    // Once for each stream of a worker, by its index here: its file goes with the route.
    StreamRoute route(int index, int local_rank, int rank, int stream);
    std::string folder(int index) const;  // empty: there is none

  private:
    std::unique_ptr<Console> file(UniqueFd fd, const std::string& name);

    boost::asio::io_context& loop_;
    const OutputPlan& plan_;
    const Consoles& consoles_;
    AttemptFiles files_;
    Console::Tell tell_;
    std::unique_ptr<Console> filtered_[2];
};

}  // namespace ddprun::agent

// Decides where the output of one generation's workers goes: makes the consoles of its files and
// gives each stream its route.
//
// Problems with files are reported once for each kind of error, however many files there are.
// Thread: the loop's. Owner: the worker set. Everything passed by reference must outlive it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "agent/output/attempt_folder.h"
#include "agent/output/console.h"
#include "agent/output/output.h"
#include "agent/output/output_plan.h"

namespace ddprun::agent {

// The outputs that all generations share.
struct Consoles {
    FileThread& files;  // for the workers' files
    Console &out, &err;
    // Bytes that workers have printed, in all generations.
    std::shared_ptr<std::int64_t> printed = std::make_shared<std::int64_t>(0);
    // What goes wrong with files that are being closed, in all generations.
    std::shared_ptr<LateFault> late = std::make_shared<LateFault>();
};

class GenerationOutput {
  public:
    // `turns` is the workers' share of the loop; `names` has all workers of this ddprun, by index.
    GenerationOutput(boost::asio::io_context& loop, const OutputPlan& plan,
                     const Consoles& consoles, OutputPlan::RankNames names, AttemptFiles files,
                     std::shared_ptr<TurnBudget> turns, Console::Tell tell);

    // Call once for each stream of a worker: the stream's file moves into the route. `index` counts
    // the workers of this ddprun.
    StreamRoute route(int index, int local_rank, int rank, int stream);
    // The worker's folder; empty if there is none.
    std::string folder(int index) const;
    // The generation's; empty if there is none.
    const std::string& folder() const { return files_.folder; }

  private:
    void collapse(const OutputPlan::RankNames& all);
    void tell_cut(int rank, std::size_t bytes) const;
    std::unique_ptr<Console> file(UniqueFd fd, const std::string& name);

    boost::asio::io_context& loop_;
    const OutputPlan& plan_;
    const Consoles& consoles_;
    AttemptFiles files_;
    std::shared_ptr<TurnBudget> turns_;
    std::shared_ptr<LineBudget> lines_ = std::make_shared<LineBudget>();
    Console::Tell tell_each_;  // reports everything
    Console::Tell tell_;       // reports each kind of error once
    std::unique_ptr<Console> filtered_[2];
};

}  // namespace ddprun::agent

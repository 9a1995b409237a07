// Looks at living workers from outside: once a second whether they stand still, and where they are
// when the leader asks. What is seen becomes an event of the agent's machine.
//
// Thread: the loop's. Owner: the runner.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "agent/node/diagnosis.h"
#include "base/error.h"
#include "base/loop/file_thread.h"
#include "diagnosis/nccl/ras_port.h"
#include "diagnosis/recorder/flight_recorders.h"
#include "diagnosis/stacks/process_stack.h"
#include "diagnosis/standstill/still_watch.h"

namespace ddprun::agent {

class WorkerLooks final : public Diagnosis {
  public:
    WorkerLooks(boost::asio::io_context& loop, Calls calls, RecorderOptions recorders,
                const Variables& user);
    static std::unique_ptr<Diagnosis> make(boost::asio::io_context& loop, Calls calls,
                                           RecorderOptions recorders, const Variables& user) {
        return std::make_unique<WorkerLooks>(loop, std::move(calls), recorders, user);
    }

    std::function<void(const std::string& temporary)> furnish(bool keeps) const override;
    void begin(const std::string& temporary, const std::string& kept,
               Variables& environment) override;
    void examine(const ExamineWorkers& asked) override;
    void look(int index, std::int64_t pid, std::function<void(Lines)> done) override;
    void close() override;

  private:
    // What is known of the workers that the leader has asked for, while it is looked for.
    struct Looked {
        Generation generation;
        Time asked_at{};
        std::string file;  // where it is kept what all do; empty: nowhere
        std::vector<rendezvous::RecordedCalls> recorded;  // of all workers of this node
        std::vector<rendezvous::WorkerOutcome> outcomes;
        std::vector<FoundStack> stacks;
        std::vector<std::string> gpus;
        int missing = 4;  // of what is looked for at the same time
    };
    void keep(const WorkerSet& set, std::function<void(const std::string&)> kept);
    void keep_nccl(const WorkerSet& set, std::function<void()> done);
    void write(Duration patience, std::function<Result<>()> work, std::function<void(bool)> done);
    void say_not_kept(const std::string& why);
    void look_closely(const std::shared_ptr<Looked>& looked, const std::vector<int>& local_ranks);
    void answer(Looked& looked);
    std::vector<rendezvous::WorkerOutcome> with_calls(
        std::vector<rendezvous::WorkerOutcome> outcomes) const;

    boost::asio::io_context& loop_;
    FlightRecorders recorders_;
    RasPort ras_port_;
    StillWatch still_;
    FileThread keeping_, asking_nccl_;
    bool keeps_ = false;  // what it was asked to before is not finished
    bool said_not_kept_ = false;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// Takes what Python's fault handler has written out of a worker's newest lines, and returns its
// functions. Of the lines before as many are left as a report has.
StackLines take_last_words(std::vector<std::string>& lines);

}  // namespace ddprun::agent

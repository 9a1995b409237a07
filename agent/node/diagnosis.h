// Looks at living workers from outside, to find out why a job does not go on. This class sees
// nothing; the product overrides it (diagnosis/looks/worker_looks.h).
//
// Thread: the loop's, but for furnish(). Owner: the runner.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/machine/events.h"
#include "agent/parts/recorder_options.h"
#include "agent/workers/worker_set.h"

namespace ddprun::agent {

class Diagnosis {
  public:
    using Lines = std::vector<std::string>;
    using Variables = std::map<std::string, std::string>;
    using Say = std::function<void(const std::string&)>;
    struct Calls {
        // The workers of the newest generation; null: none have been started yet.
        std::function<const WorkerSet*()> workers;
        std::function<void(Event)> post;
        Say warn;    // what workers do cannot be kept
        Say unseen;  // workers cannot be watched
    };
    explicit Diagnosis(Calls calls) : calls_(std::move(calls)) {}
    virtual ~Diagnosis() = default;
    Diagnosis(const Diagnosis&) = delete;
    Diagnosis& operator=(const Diagnosis&) = delete;

    // Makes what the workers need in the job's temporary folder, once for each such folder, before
    // the first worker starts. For a file thread. Empty: nothing is needed. `keeps`: there are
    // files that stay (--log-dir).
    virtual std::function<void(const std::string& temporary)> furnish(bool /*keeps*/) const {
        return {};
    }
    // A generation begins. Its workers get what they need in `environment`, and nothing that those
    // of the generation before got. `temporary`: the furnished folder; `kept`: where files stay.
    // Either may be empty.
    virtual void begin(const std::string& /*temporary*/, const std::string& /*kept*/,
                       Variables& /*environment*/) {}
    // Finds out where hanging workers are, and what all of this node have recorded. Answered by
    // WorkersExamined. What all do is kept in the log folder, if there is one.
    virtual void examine(const ExamineWorkers& asked) {
        if (const WorkerSet* set = calls_.workers())
            calls_.post(WorkersExamined{asked.generation, set->living(asked.local_ranks), {}});
    }
    // Where the threads of one worker are, for who asks while the job runs: nothing stops it.
    // `done` is called once from the loop, within two seconds, or never after the end of this
    // object.
    virtual void look(int /*index*/, std::int64_t /*pid*/, std::function<void(Lines)> done) {
        done({"this ddprun was built without diagnosis"});
    }
    // Looks no more.
    virtual void close() {}

  protected:
    Calls calls_;
};

// `user`: the environment from which the workers get theirs. What is set there stays.
using MakeDiagnosis = std::unique_ptr<Diagnosis> (*)(boost::asio::io_context& loop,
                                                     Diagnosis::Calls calls,
                                                     RecorderOptions recorders,
                                                     const Diagnosis::Variables& user);

}  // namespace ddprun::agent

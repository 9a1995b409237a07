// Answers what the workers of one node ask by PMI-1 (pmi_request.h), in one generation. The values
// that they put are theirs alone until all workers of all nodes have come to a barrier; then all
// have them:
//
//   put … put … barrier_in   all workers of this node have come: `round`, what they have put
//                            ... the nodes exchange it (pmi_rounds.h) ...
//   round_over(all)          barrier_out to all; what others have put can be got
//
// A worker runs one program of MPI: MPI_Finalize shuts the socket, also for those who share it. Two
// at once would take each other's answers, so the second one ends the worker.
//
// Pure. Owner: the PMI server (pmi_server.h), one for each generation.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/death/exit_report.h"
#include "agent/pmi/pmi_request.h"
#include "rendezvous/model/node_place.h"

namespace ddprun::agent::pmi {

class Desk {
  public:
    // What one worker may put between two barriers, in bytes, and have in all.
    static constexpr std::size_t kMostBytes = std::size_t{1} << 20;

    struct Answer {
        int index = 0;  // counts the workers of this node
        std::string text;
    };
    struct Fault {
        int index = 0;
        std::string why;
        int exit_code = 0;  // that it has asked for, 1 to 255; 0: none
    };
    struct Outcome {
        std::vector<Answer> answers;
        // All workers of this node have come to the barrier, and bring this.
        std::optional<std::string> round;
        // This worker is to be ended. Nothing else is said to it.
        std::optional<Fault> fault;
    };

    explicit Desk(const rendezvous::NodePlace& place);

    // A line without its newline.
    Outcome line(int index, std::string_view line);
    // What each node has brought to the round, this one's too, in any order.
    // Possible errors: malformed: another node has sent something else.
    Result<Outcome> round_over(const std::vector<std::string>& brought);
    // What the end of a worker's process means: how it counts as ended, and what the user should
    // hear of it. Empty: nothing.
    struct Exit {
        ExitStatus status;
        std::string warning;
    };
    Exit exited(int index, const ExitStatus& status);

  private:
    struct Worker {
        bool begun = false;
        bool finalized = false;
        bool left = false;      // its process has ended
        bool spawning = false;  // lines of a request that is refused
        bool waits = false;     // at the barrier
        std::string put;        // since the last barrier, as it is exchanged
        std::size_t bytes = 0;  // put in all
    };
    using Reply = Result<std::string>;  // an error ends the worker

    Reply answer(Worker& worker, const Request& request);
    Reply init(Worker& worker, const Request& request);
    std::string rank_of(int index) const;
    Exit left_alone(int index, const std::string& call) const;
    std::string none_asked() const;
    Reply put(Worker& worker, const Request& request);
    std::string get(const Request& request) const;
    Outcome barrier(Worker& worker);

    rendezvous::NodePlace place_;
    std::string name_;  // of the space of keys
    std::vector<Worker> workers_;
    bool failed_ = false;  // a worker has left so
    std::map<std::string, std::string> values_;
};

// Which ranks share a host, in MPICH's words: "(vector,(0,2,4))" says that two hosts have four
// ranks each. Empty: it cannot be said so; MPICH then asks all ranks for their host names.
std::string process_mapping(const rendezvous::NodePlace& place);

}  // namespace ddprun::agent::pmi

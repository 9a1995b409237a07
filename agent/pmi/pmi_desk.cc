// Answers the requests of PMI-1.
#include "agent/pmi/pmi_desk.h"

#include <algorithm>
#include <csignal>
#include <sstream>

#include "base/count_text.h"
#include "base/printable.h"

namespace ddprun::agent::pmi {
namespace {

constexpr const char* kMapping = "PMI_process_mapping";

Error not_pmi(const std::string& sentence) { return Error(ErrorCode::malformed, sentence); }

std::string refused(const std::string& answer, const std::string& why) {
    return "cmd=" + answer + " rc=-1 msg=" + why;
}

}  // namespace

std::string process_mapping(const rendezvous::NodePlace& place) {
    // Ranks of nodes that share a host may lie in any order.
    if (place.shared || (!place.equal_slots && place.nodes > 1)) return {};
    return "(vector,(0," + std::to_string(place.nodes) + "," + std::to_string(place.slots) + "))";
}

Desk::Desk(const rendezvous::NodePlace& place)
    : place_(place),
      name_("kvs_" + std::to_string(place.generation.value)),
      workers_(static_cast<std::size_t>(place.slots)) {}

Desk::Outcome Desk::line(int index, std::string_view line) {
    Worker& worker = workers_.at(static_cast<std::size_t>(index));
    const auto faulty = [index](const std::string& why) {
        return Outcome{{}, std::nullopt, Fault{index, why}};
    };
    if (worker.spawning) {
        worker.spawning = line != "endcmd";
        if (worker.spawning) return {};
        return {{{index, refused("spawn_result", "ddprun_starts_no_further_processes")}}, {}, {}};
    }
    const Result<Request> request = Request::parse(line);
    if (!request) return faulty("it does not speak PMI-1: " + request.error().sentence());
    // A program of MPI waits for an answer before it asks again; only MPI_Abort may come from
    // another of its threads. A second barrier_in would begin a round within a round. A second
    // program has its own reason.
    const bool is_second = worker.begun && request->command() == "init";
    if (worker.waits && request->command() != "abort" && !is_second)
        return faulty("it asks PMI for more while it waits at a barrier: \"" +
                      printable(line.substr(0, 80)) + "\"");
    if (request->has_more_lines()) {
        worker.spawning = true;
        return {};
    }
    if (request->command() == "barrier_in") return barrier(worker);
    // MPICH waits to be killed.
    if (request->command() == "abort") {
        // What a process can exit with: 256 would be a success.
        const int code = request->number("exitcode").value_or(0) & 0xff;
        return {
            {},
            {},
            Fault{index, "it has called MPI_Abort with exit code " + std::to_string(code), code}};
    }
    Reply reply = answer(worker, *request);
    if (!reply) return faulty(reply.error().sentence());
    return {{{index, std::move(*reply)}}, {}, {}};
}

std::string Desk::rank_of(int index) const {
    return "rank " + std::to_string(place_.rank_offset + index);
}

// A rank that leaves with success where the others would wait for it for ever: nothing else tells
// them.
Desk::Exit Desk::left_alone(int index, const std::string& call) const {
    return {{.code = 1},
            rank_of(index) + " has left with exit code 0 before " + call +
                ", where the other ranks wait for it; this counts as exit code 1"};
}

Desk::Exit Desk::exited(int index, const ExitStatus& status) {
    Worker& worker = workers_.at(static_cast<std::size_t>(index));
    worker.left = true;
    failed_ |= status.failed();
    const std::string rank = rank_of(index);
    const bool any_begun = std::ranges::any_of(workers_, &Worker::begun);
    if (!status.failed() && worker.begun && !worker.finalized)
        return left_alone(index, "MPI_Finalize");
    if (!status.failed() && !worker.begun && any_begun) return left_alone(index, "MPI_Init");
    if (!failed_ && !any_begun && std::ranges::all_of(workers_, &Worker::left))
        return {status, none_asked()};
    if (status.signal == SIGPIPE && worker.finalized)
        return {status, rank +
                            " may have begun a second program of MPI: a worker can run one, since "
                            "MPI_Finalize closes PMI for good; start the second with a ddprun of "
                            "its own"};
    return {status, ""};
}

// Once for each node and generation, when its last worker has left.
std::string Desk::none_asked() const {
    return "--pmi: none of " + count_text(place_.slots, "worker") + " of this node, from " +
           rank_of(0) +
           " on, has asked PMI for its place, so each was a job of its own to MPI; leave out "
           "--pmi, or build the program with MPICH, Intel MPI or MVAPICH (Open MPI: srun "
           "--mpi=pmix)";
}

Desk::Reply Desk::answer(Worker& worker, const Request& request) {
    const std::string& command = request.command();
    if (command == "init") return init(worker, request);
    if (command == "get_maxes")
        return "cmd=maxes kvsname_max=" + std::to_string(kLongestName) +
               " keylen_max=" + std::to_string(kLongestKey) +
               " vallen_max=" + std::to_string(kLongestValue) + " rc=0";
    if (command == "get_appnum") return std::string("cmd=appnum appnum=0 rc=0");
    if (command == "get_universe_size")
        return "cmd=universe_size size=" + std::to_string(place_.world_size) + " rc=0";
    if (command == "get_my_kvsname") return "cmd=my_kvsname kvsname=" + name_ + " rc=0";
    if (command == "put") return put(worker, request);
    if (command == "get") return get(request);
    if (command == "finalize") {
        worker.finalized = true;
        return std::string("cmd=finalize_ack rc=0");
    }
    const std::string not_served = "ddprun_serves_no_names";
    if (command == "publish_name") return refused("publish_result", not_served);
    if (command == "unpublish_name") return refused("unpublish_result", not_served);
    if (command == "lookup_name") return refused("lookup_result", not_served);
    return not_pmi("it asks by PMI for \"" + printable(command) + "\", which ddprun does not know");
}

Desk::Reply Desk::init(Worker& worker, const Request& request) {
    if (request.number("pmi_version") != 1)
        return not_pmi("it speaks PMI version " +
                       printable(std::string(request.word("pmi_version"))) +
                       ", and ddprun speaks version 1");
    // Their answers could not be told apart, and both would hang.
    if (worker.begun)
        return not_pmi(
            "two programs of MPI run in it at once, and a worker can run one; give each a ddprun "
            "of its own");
    const auto gone = std::ranges::find(workers_, true, &Worker::left);
    if (gone != workers_.end())
        return not_pmi("MPI_Init needs all ranks, and " +
                       rank_of(static_cast<int>(gone - workers_.begin())) + " has left before it");
    worker.begun = true;
    return std::string("cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0");
}

Desk::Reply Desk::put(Worker& worker, const Request& request) {
    const std::string_view key = request.word("key"), value = request.word("value");
    if (request.word("kvsname") != name_) return refused("put_result", "wrong_kvsname");
    if (key.empty() || key.size() > kLongestKey)
        return refused("put_result", "wrong_length_of_key");
    if (value.size() > kLongestValue) return refused("put_result", "value_too_long");
    const std::size_t before = worker.put.size();
    worker.put.append(key).append(" ").append(value).append("\n");
    worker.bytes += worker.put.size() - before;
    if (worker.bytes > kMostBytes)
        return not_pmi("it puts more than " + std::to_string(kMostBytes >> 10) +
                       " KiB into PMI's space of keys");
    return std::string("cmd=put_result rc=0 msg=success");
}

std::string Desk::get(const Request& request) const {
    const std::string key(request.word("key"));
    if (request.word("kvsname") != name_)
        return refused("get_result", "wrong_kvsname") + " value=unknown";
    if (const std::string mapping = process_mapping(place_); key == kMapping && !mapping.empty())
        return "cmd=get_result rc=0 msg=success value=" + mapping;
    const auto found = values_.find(key);
    if (found == values_.end()) return refused("get_result", "key_not_found") + " value=unknown";
    return "cmd=get_result rc=0 msg=success value=" + found->second;
}

Desk::Outcome Desk::barrier(Worker& worker) {
    worker.waits = true;
    if (!std::ranges::all_of(workers_, &Worker::waits)) return {};
    std::string round;
    for (Worker& each : workers_) round += std::exchange(each.put, {});
    return {{}, std::move(round), {}};
}

Result<Desk::Outcome> Desk::round_over(const std::vector<std::string>& brought) {
    for (const std::string& text : brought) {
        std::istringstream lines(text);
        for (std::string line; std::getline(lines, line);) {
            const std::size_t space = line.find(' ');
            if (space == std::string::npos)
                return not_pmi("a node has brought \"" + printable(line.substr(0, 80)) +
                               "\" to a barrier of PMI");
            values_[line.substr(0, space)] = line.substr(space + 1);
        }
    }
    Outcome outcome;
    for (std::size_t i = 0; i < workers_.size(); ++i) {
        workers_[i].waits = false;
        outcome.answers.push_back({static_cast<int>(i), "cmd=barrier_out rc=0"});
    }
    return outcome;
}

}  // namespace ddprun::agent::pmi

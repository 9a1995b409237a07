// Makes the value of a dry run: plays the first generation with the nodes that the plan expects,
// and marks what a real start might find otherwise.
#include "launcher/dry_run/dry_run.h"

#include <algorithm>

#include "agent/output/attempt_names.h"
#include "agent/workers/worker_arguments.h"
#include "launcher/dry_run/first_generation.h"
#include "launcher/plan/agent_config.h"

namespace ddprun::launcher {
namespace {

using rendezvous::Assignment;
using rendezvous::NodeId;

// A step to come has no step id yet, and outside a job no job id: the names contain STEP and JOB
// instead.
std::string with_numbers(const std::string& name, const StepToCome& step) {
    return name + (step.nodes_known ? ", where STEP is the step's number"
                                    : ", where JOB and STEP are the numbers of job and step");
}

Known<std::string> run_id_of(const JobInput& input, const StepToCome* step) {
    const std::string& id = input.plan.run_id;
    // Nobody has named the run, so a real start would make a name.
    if (id == input.host.random_id) return {std::nullopt, "made at the start; --rdzv-id names one"};
    if (step) return {std::nullopt, with_numbers(id, *step)};
    return {id, ""};
}

// With Lead::if_address_matches the leader is found by a look-up of the name, which a dry run does
// not do.
Known<std::string> leader_of(const Plan& plan) {
    if (plan.lead == Lead::yes) return {plan.node_name, ""};
    if (plan.lead == Lead::no) return {plan.endpoint.host, ""};
    return {std::nullopt, "the node that has the address " + plan.endpoint.host +
                              ", which is looked up at the start"};
}

// Ports of a step are derived from the job's and step's numbers (plan_meeting.h), unknown before
// the step.
Known<std::vector<int>> ports_of(const Plan& plan, const StepToCome* step) {
    if (meets_nobody(plan)) return {std::vector<int>{}, ""};
    if (step) return {std::nullopt, "made from the numbers of job and step, unless --ports says"};
    return {plan.endpoint.ports, ""};
}

// A ledger in memory has no name, so nothing of it depends on the step.
Known<std::string> ledger_of(const Plan& plan, const StepToCome* step) {
    std::string place = to_text(plan.ledger.place);
    if (step && is_shared(plan.ledger.place)) return {std::nullopt, with_numbers(place, *step)};
    return {std::move(place), ""};
}

// In words, because the user may need to know why a node has its rank.
std::string order_of(const Plan& plan) {
    if (plan.limits.max_nodes == 1 && plan.limits.order.size() <= 1) return "there is one";
    if (plan.task) return "that of the tasks, SLURM_PROCID";
    if (!plan.limits.order.empty()) return "that of the step, SLURM_NODEID";
    return plan.node_rank ? "--node-rank" : "the names of the nodes that come";
}

// The folder of the first generation's files. Without a log folder it is a temporary one, which is
// removed at the end of the job.
std::string attempt_of(const JobInput& input) {
    const Plan& plan = input.plan;
    std::string base = plan.log_dir;
    if (base.empty())
        base = input.host.fleeting_directory + "/" + agent::kTemporaryFolder;
    else
        base += "/" + agent::run_folder(plan.run_id, std::string(kNotMadeYet).substr(0, 8));
    if (!base.starts_with('/')) base = input.host.working_directory + "/" + base;
    return agent::attempt_folder(base, Generation{0});
}

std::vector<DryRun::Worker> workers_of(const JobInput& input, const agent::WorkerPlan& workers,
                                       const Places& places, const rendezvous::Member& self) {
    std::vector<DryRun::Worker> all;
    // What this process sees, in CUDA's own order; --virtual-local-rank gives each worker one of
    // these.
    const auto visible = agent::visible_devices(input.host.gpus, input.host.cuda_visible_devices);
    const int first = input.plan.task ? input.plan.task->local_id : 0;
    for (int i = 0; i < input.plan.slots; ++i) {
        const auto index = static_cast<std::size_t>(i);
        DryRun::Worker worker{first + i, places.rank(self, i), visible, {}, {}, {}};
        if (!workers.cpus.empty()) worker.cpus = workers.cpus[index];
        if (!workers.more.empty())
            if (const auto own = workers.more[index].find("CUDA_VISIBLE_DEVICES");
                own != workers.more[index].end())
                worker.devices = {own->second};
        worker.argv = agent::worker_arguments(workers.argv, workers.first_argument, first + i,
                                              workers.collapse_dollars);
        // Stream 0 is stdout, 1 is stderr; bit n of to_files() says whether stream n goes to a
        // file.
        for (const int stream : {0, 1})
            if (workers.output.to_files(i) & (1 << stream))
                worker.files.push_back(agent::worker_folder(attempt_of(input), first + i) + "/" +
                                       agent::kStreamFiles[stream]);
        all.push_back(std::move(worker));
    }
    return all;
}

// Decides for one variable whether its value is certain, conditional or unknown. The value itself
// comes from the same function as in a real start.
Known<std::string> judge(const std::string& name, const std::string& value, const DryRun& dry,
                         const Places& places, const Assignment& assignment) {
    const Plan& plan = dry.plan;
    const bool first = assignment.members.front().node.name == plan.node_name;
    const auto with = [&](const std::string& unknown, const std::string& condition) {
        return with_doubt(value, unknown, condition);
    };
    if (name == "MASTER_PORT") return with("a free one, anew in each generation", "");
    // These lie in the folder of the attempt, whose name has random characters: the text shows the
    // form only.
    if (name == "TORCHELASTIC_ERROR_FILE" || name == "DDPRUN_STOP_FILE" ||
        name == "DDPRUN_SNAPSHOT_FILE")
        return with(value, "");
    if (name == "TORCHELASTIC_RUN_ID")
        return plan.workers.run_id.empty() ? dry.run_id : Known<std::string>{value, ""};
    if (name == "DDPRUN_RUN_KEY")
        return dry.start == DryRun::Start::step_to_come || plan.workers.run.empty()
                   ? with("made for each run", "")
                   : Known<std::string>{value, ""};
    if (name == "WORLD_SIZE" || name == "ROLE_WORLD_SIZE")
        return with(places.doubts.workers, places.of_world());
    if (name == "LOCAL_WORLD_SIZE") return with(places.doubts.workers, "");
    if (name == "GROUP_WORLD_SIZE") return with("", places.doubts.if_all_come);
    if (name == "GROUP_RANK")
        return with(places.no_place(), first ? "" : places.doubts.if_all_come);
    if (name == "RANK" || name == "ROLE_RANK") {
        const auto rank = places.rank(*assignment.find({plan.node_name, {}}), 0);
        return rank.value ? Known<std::string>{value, rank.note} : with(rank.note, "");
    }
    // In a step to come not even the names of the nodes need be known.
    if (name == "MASTER_ADDR" && dry.start == DryRun::Start::step_to_come && !dry.leader.value)
        return with("the name of the first node", "");
    if (name == "MASTER_ADDR" && (value.empty() || places.doubts.place || !first))
        return with("an address of the node with rank 0" + std::string(first ? " (this one)" : ""),
                    "");
    // The number of the first generation is 0 for a new job only. A ledger outside this process may
    // already have generations, from before a requeue or from another leader.
    if (name == "TORCHELASTIC_RESTART_COUNT" &&
        (is_shared(plan.ledger.place) || plan.lead != Lead::yes))
        return with("", "unless the job has had generations before");
    return {value, ""};
}

// The FIFO of torchrun's file timers: where the user has named one, else among the files of local
// rank 0.
Known<std::string> timer_of(const JobInput& input) {
    if (const std::string named = timer_file(input); !named.empty()) return {named, ""};
    return {std::nullopt, agent::worker_folder(attempt_of(input), 0) + "/" + agent::kTimerFile};
}

// The variables that ddprun itself sets, whether or not its own environment has them. To find
// these, the environment of a worker is made twice: once from nothing, once from the real one.
std::vector<DryRun::Variable> variables_of(const JobInput& input, const agent::WorkerPlan& workers,
                                           const DryRun& dry, const Places& places,
                                           const Assignment& assignment, const StepToCome* step) {
    const rendezvous::NodePlace self = rendezvous::places_of(assignment).at(workers.node);
    agent::WorkerPlace place = agent::place_of(workers, self, 0);
    place.error_file = agent::worker_folder(attempt_of(input), 0) + "/" + agent::kErrorFile;
    place.stop_file = agent::worker_folder(attempt_of(input), 0) + "/" + agent::kStopFile;
    place.snapshot_file = agent::worker_folder(attempt_of(input), 0) + "/" + agent::kSnapshotFile;
    std::vector<DryRun::Variable> variables;
    const auto name_of = [](const std::string& line) { return line.substr(0, line.find('=')); };
    // From an empty environment: what is in it comes from ddprun alone.
    const auto ours = agent::worker_environment({}, place);
    for (const std::string& line : agent::worker_environment(workers.environment, place)) {
        const std::string name = name_of(line);
        if (std::ranges::find(ours, name, name_of) != ours.end())
            variables.push_back(
                {name, judge(name, line.substr(name.size() + 1), dry, places, assignment)});
    }
    // The value depends on the CPUs of a node, which this host cannot know.
    if (step && !workers.environment.contains("OMP_NUM_THREADS"))
        variables.push_back(
            {"OMP_NUM_THREADS", {std::nullopt, "the node's CPUs, shared among its workers"}});
    if (input.plan.recorders.ras_port && !workers.environment.contains("NCCL_RAS_ADDR"))
        variables.push_back({"NCCL_RAS_ADDR", {std::nullopt, "a free port of 127.0.0.1"}});
    if (serves_timers(input)) variables.push_back({agent::kTimerVariable, timer_of(input)});
    std::ranges::sort(variables, {}, &DryRun::Variable::name);
    return variables;
}

// Names only the nodes whose place is certain; "this node" makes sense only if this host is one of
// them.
void tell_nodes(DryRun& dry, const Places& places, const StepToCome* step) {
    const Doubts& doubts = places.doubts;
    for (const rendezvous::Member& member : places.assignment.members) {
        DryRun::Node node;
        node.here = !step && !doubts.place && member.node.name == dry.plan.node_name;
        if (!doubts.place && (!step || step->nodes_known)) node.name = member.node.name;
        node.workers =
            with_doubt(member.offer.slots, doubts.workers, node.here ? "" : doubts.if_equal);
        node.first_rank = places.rank(member, 0);
        dry.nodes.push_back(std::move(node));
    }
}

// All warnings; that srun is missing comes first.
void tell_sentences(DryRun& dry, const StepToCome* step) {
    const Plan& plan = dry.plan;
    if (step) dry.warnings.push_back(step->warning);
    for (const auto* some : {&plan.host_warnings, &plan.warnings})
        dry.warnings.insert(dry.warnings.end(), some->begin(), some->end());
    dry.notes = plan.notes;
}

}  // namespace

DryRun make_dry_run(const JobInput& input, const StepToCome* step,
                    const std::vector<OptionOrigin>& options) {
    DryRun dry;
    // The option that asked for the dry run is none of the start.
    for (const OptionOrigin& one : options)
        if (one.row->name != "dry-run") dry.options.push_back(one);
    const Plan& plan = dry.plan = input.plan;
    // An incarnation belongs to a process that joins. A dry run has none, and the name identifies
    // this node.
    const NodeId self{plan.node_name, {}};
    const Assignment assignment = first_generation(input, self);
    const Doubts doubts = doubts_of(plan, step);
    const Places places{assignment, doubts};
    // A list of expected nodes comes from Slurm only, so it tells a step from an endpoint.
    dry.start = step                         ? DryRun::Start::step_to_come
                : meets_nobody(plan)         ? DryRun::Start::one_node
                : !plan.limits.order.empty() ? DryRun::Start::step
                                             : DryRun::Start::endpoint;
    dry.run_id = run_id_of(input, step);
    dry.order = order_of(plan);
    dry.workers_per_node = with_doubt(plan.slots, step ? step->workers_note : "", "");
    dry.world_size = with_doubt(assignment.world_size, doubts.workers, places.of_world());
    dry.leader = leader_of(plan);
    // The plan has an invented name for the first node here (step_to_come.h); it must not be shown.
    if (step && !step->nodes_known) dry.leader = {std::nullopt, "the first node of the step"};
    dry.ports = ports_of(plan, step);
    dry.ledger = ledger_of(plan, step);
    dry.restarts = assignment.max_restarts;
    tell_nodes(dry, places, step);
    // This node may be a spare, if more nodes come than may take part. It then has no workers to
    // show.
    const agent::WorkerPlan workers = worker_plan(input, self);
    if (const auto* member = assignment.find(self)) {
        if (!step) dry.workers = workers_of(input, workers, places, *member);
        dry.variables = variables_of(input, workers, dry, places, assignment, step);
    }
    for (const int stream : {0, 1})
        if (workers.output.to_filtered() & (1 << stream))
            dry.files.push_back(agent::filtered_file(attempt_of(input), stream));
    tell_sentences(dry, step);
    return dry;
}

const char* to_string(DryRun::Start start) {
    switch (start) {
        case DryRun::Start::one_node:
            return "one_node";
        case DryRun::Start::endpoint:
            return "endpoint";
        case DryRun::Start::step:
            return "step";
        case DryRun::Start::step_to_come:
            return "step_to_come";
    }
    return "";
}

}  // namespace ddprun::launcher

// Writes a dry run as JSON, one function for each object in it.
#include "launcher/dry_run/dry_run_json.h"
#include "rendezvous/model/durations.h"

#include <nlohmann/json.hpp>

namespace ddprun::launcher {
namespace {

using Json = nlohmann::ordered_json;

// An empty text means "none" or "not known" throughout, and becomes null.
Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

// Always {"value", "note"}, also when the value is certain, so that a reader needs one rule only.
template <class T>
Json json_of(const Known<T>& known) {
    return {{"value", known.value ? Json(*known.value) : Json()},
            {"note", text_or_null(known.note)}};
}

Json nodes_of(const DryRun& dry) {
    Json list = Json::array();
    for (const DryRun::Node& node : dry.nodes)
        list.push_back({{"name", text_or_null(node.name)},
                        {"this_node", node.here},
                        {"workers", json_of(node.workers)},
                        {"first_rank", json_of(node.first_rank)}});
    return {{"min", dry.plan.limits.min_nodes},
            {"max", dry.plan.limits.max_nodes},
            {"order", dry.order},
            {"list", std::move(list)}};
}

const char* identity_of(rendezvous::IdentityMode mode) {
    switch (mode) {
        case rendezvous::IdentityMode::automatic:
            return "auto";
        case rendezvous::IdentityMode::require:
            return "require";
        case rendezvous::IdentityMode::none:
            return "none";
    }
    return "auto";
}

Json etcd_of(const Plan& plan) {
    if (!is_in_etcd(plan.ledger.place)) return {};
    const rendezvous::EtcdFiles& files = plan.ledger.etcd;
    return {{"user_file", text_or_null(files.user)},
            {"cacert", text_or_null(files.cacert)},
            {"cert", text_or_null(files.cert)},
            {"key", text_or_null(files.key)},
            {"sealed", !plan.identity.secret_file.empty()}};
}

// In a step to come this host is not one of the nodes, so it never leads.
Json meeting_of(const DryRun& dry) {
    const Plan& plan = dry.plan;
    return {{"needed", dry.start != DryRun::Start::one_node},
            {"leader", json_of(dry.leader)},
            {"leads_here", dry.start == DryRun::Start::step_to_come ? "no" : to_string(plan.lead)},
            {"host", dry.start == DryRun::Start::one_node ? Json() : Json(plan.endpoint.host)},
            {"ports", json_of(dry.ports)},
            {"ledger", json_of(dry.ledger)},
            {"ledger_chosen", plan.ledger.chosen},
            {"etcd", etcd_of(plan)},
            {"identity", identity_of(plan.identity.mode)},
            {"secret_file", text_or_null(plan.identity.secret_file)}};
}

Json workers_json(const DryRun& dry) {
    Json list = Json::array();
    for (const DryRun::Worker& worker : dry.workers)
        list.push_back({{"local_rank", worker.local_rank},
                        {"rank", json_of(worker.rank)},
                        {"devices", worker.devices},
                        {"cpus", worker.cpus.empty() ? Json() : Json(worker.cpus)},
                        {"argv", worker.argv},
                        {"files", worker.files}});
    return {{"per_node", json_of(dry.workers_per_node)},
            // The reason belongs to the number; without a number it would explain something that is
            // not there.
            {"reason", text_or_null(dry.workers_per_node.value ? dry.plan.slots_reason : "")},
            {"world_size", json_of(dry.world_size)},
            {"list", std::move(list)}};
}

Json command_of(const Plan& plan) {
    return {{"argv", plan.workers.argv},
            {"interpreter", plan.program.python ? Json(plan.workers.argv.front()) : Json()},
            {"role", plan.workers.role}};
}

Json variables_json(const DryRun& dry) {
    Json variables = Json::object();
    for (const DryRun::Variable& variable : dry.variables)
        variables[variable.name] = json_of(variable.value);
    return variables;
}

Json times_of(const Plan& plan) {
    const rendezvous::Times& times = plan.limits.times;
    return {{"lease_seconds", in_seconds(times.lease)},
            {"join_timeout_seconds", in_seconds(times.join_timeout)},
            {"last_call_seconds", in_seconds(times.last_call)},
            {"requeue_wait_seconds", in_seconds(rendezvous::requeue_wait(times))},
            {"grace_final_seconds", in_seconds(plan.grace.final_stop)},
            {"grace_restart_seconds", in_seconds(plan.grace.restart)},
            {"wait_for_helpers_seconds",
             plan.grace.helpers ? Json(in_seconds(*plan.grace.helpers)) : Json()},
            {"unkillable_seconds", in_seconds(plan.grace.killed)}};
}

Json stop_of(const Plan& plan) {
    const agent::StopOptions& stop = plan.stop;
    // In the order of agent::RequeueMode.
    constexpr const char* kModes[] = {"auto", "never", "always"};
    const auto number = [](const auto& value) { return value ? Json(*value) : Json(); };
    return {
        {"before_seconds", stop.before ? Json(in_seconds(*stop.before)) : Json()},
        {"signal", number(stop.worker_signal)},
        {"requeue", kModes[static_cast<int>(stop.requeue)]},
        {"requeue_signals", stop.requeue_signals},
        {"requeue_begin_seconds", plan.requeue_begin ? Json(plan.requeue_begin->count()) : Json()},
        {"headless", plan.end_headless ? "end" : "keep"}};
}

Json failure_of(const DryRun& dry) {
    const Plan& plan = dry.plan;
    return {{"max_restarts", dry.restarts},
            {"max_restarts_auto", plan.limits.max_restarts == rendezvous::kAutoRestarts},
            {"crash_loop", plan.limits.crash_loop},
            {"hang_timeout_seconds", in_seconds(plan.limits.hang_timeout)},
            {"hang_timeout_auto", plan.limits.hang_auto},
            {"flight_recorder", plan.recorders.opens_server},
            {"on_failure", text_or_null(plan.on_failure)},
            {"on_event", text_or_null(plan.on_event)}};
}

Json output_of(const DryRun& dry) {
    Json shown = Json::array();
    for (std::size_t i = 0; i < dry.plan.workers.output.ranks.size(); ++i)
        if (dry.plan.workers.output.ranks[i].shown) shown.push_back(i);
    return {{"console_local_ranks", std::move(shown)},
            {"log_dir", text_or_null(dry.plan.log_dir)},
            {"files", dry.files}};
}

Json options_of(const DryRun& dry) {
    Json options = Json::object();
    for (const OptionOrigin& one : dry.options)
        options[std::string(one.row->name)] = {{"value", text_or_null(one.value)},
                                               {"from", to_string(one.source)},
                                               {"where", one.where}};
    return options;
}

}  // namespace

std::string dry_run_json(const DryRun& dry) {
    // `replace`: words of the command line need not be valid UTF-8, and dump() would throw.
    const Json json = {
        {"format", "ddprun dry run"},
        {"version", kDryRunJsonVersion},
        {"start", to_string(dry.start)},
        {"node", dry.start == DryRun::Start::step_to_come ? Json() : Json(dry.plan.node_name)},
        {"run_id", json_of(dry.run_id)},
        {"nodes", nodes_of(dry)},
        {"workers", workers_json(dry)},
        {"meeting", meeting_of(dry)},
        {"command", command_of(dry.plan)},
        {"variables", variables_json(dry)},
        {"times", times_of(dry.plan)},
        {"stop", stop_of(dry.plan)},
        {"failure", failure_of(dry)},
        {"output", output_of(dry)},
        {"options", options_of(dry)},
        {"warnings", dry.warnings},
        {"notes", dry.notes}};
    return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ddprun::launcher

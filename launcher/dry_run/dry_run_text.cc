// Writes a dry run as text: a line at the top, then one block for each group of options.
#include "launcher/dry_run/dry_run_text.h"

#include <algorithm>
#include <set>

#include "agent/death/exit_report.h"
#include "base/count_text.h"
#include "base/number_ranges.h"
#include "launcher/dry_run/dry_run_words.h"
#include "launcher/options/option_table.h"
#include "rendezvous/model/durations.h"
#include "rendezvous/model/node_name.h"
#include "slurm/hostlist.h"

namespace ddprun::launcher {
namespace {

// Collects the text. Each private function below writes one block.
class Writer {
  public:
    explicit Writer(const DryRun& dry) : dry_(dry), plan_(dry.plan) {}

    std::string text() {
        head();
        nodes();
        meeting();
        failure();
        output();
        worker();
        variables();
        options();
        sentences("Warnings", dry_.warnings);
        sentences("Notes", dry_.notes);
        return std::move(text_);
    }

  private:
    // With --task-per-worker several entries of `nodes` are tasks of one host; people count hosts.
    int hosts() const {
        if (!plan_.task) return static_cast<int>(dry_.nodes.size());
        std::set<std::string> names;
        for (const std::string& node : plan_.limits.order) names.insert(rendezvous::host_of(node));
        return static_cast<int>(names.size());
    }

    void title(std::string_view text) { text_ += "\n" + std::string(text) + ":\n"; }
    void row(std::string name, const std::string& value) {
        // At least 20 columns for the name, and at least one space behind a longer one.
        name.resize(std::max<std::size_t>(name.size() + 1, 20), ' ');
        text_ += "  " + name + value + "\n";
    }

    void head() {
        text_ = dry_.start == DryRun::Start::step_to_come ? "srun ddprun would start "
                                                          : "ddprun would start ";
        text_ += dry_.world_size.value ? count_text(*dry_.world_size.value, "worker") : "workers";
        text_ +=
            " on " + count_text(hosts(), "node") +
            (dry_.world_size.note.empty() || !dry_.world_size.value ? ""
                                                                    : ", " + dry_.world_size.note) +
            "; nothing has been started.\n";
    }

    // The nodes as one folded host list, then the ranks of each: of the first 32, since a job of
    // thousands of nodes would fill the screen.
    void nodes() {
        title(kNodesTitle);
        std::vector<std::string> names;
        for (const DryRun::Node& node : dry_.nodes)
            if (!node.name.empty()) names.push_back(node.name);
        const std::string range = plan_.limits.min_nodes == plan_.limits.max_nodes
                                      ? std::to_string(plan_.limits.max_nodes)
                                      : std::to_string(plan_.limits.min_nodes) + " to " +
                                            std::to_string(plan_.limits.max_nodes);
        row(plan_.task ? "tasks" : "nodes",
            range + (names.size() == dry_.nodes.size() ? ": " + slurm::fold_hostlist(names)
                                                       : ", whose names are not known yet"));
        if (dry_.nodes.size() > 1) row("their order", dry_.order);
        row(plan_.task ? "workers per task" : "workers per node",
            dry_.workers_per_node.value
                ? std::to_string(*dry_.workers_per_node.value) + ": " + plan_.slots_reason
                : text_of(dry_.workers_per_node));
        row("world size", text_of(dry_.world_size));
        // Without a world size no rank can be told, so there is nothing to list.
        if (!dry_.world_size.value) return;
        constexpr std::size_t kMost = 32;
        for (std::size_t i = 0; i < std::min(kMost, dry_.nodes.size()); ++i) ranks(i);
        if (dry_.nodes.size() > kMost) row("ranks", "and so on; --dry-run=json has all nodes");
    }

    // One line of ranks: "0-7", or why they are not known.
    void ranks(std::size_t index) {
        const DryRun::Node& node = dry_.nodes[index];
        std::string ranks = "not known yet: " + node.first_rank.note;
        if (node.first_rank.value && node.workers.value) {
            const int first = *node.first_rank.value, last = first + *node.workers.value - 1;
            ranks = std::to_string(first) + (last > first ? "-" + std::to_string(last) : "");
        }
        row("ranks of " + (node.name.empty() ? "node " + std::to_string(index) : node.name),
            ranks + (node.here ? " (this node)" : ""));
    }

    // One node alone needs no rendezvous. All of its settings would only confuse.
    void meeting() {
        title(kMeetingTitle);
        row("run id", text_of(dry_.run_id));
        if (dry_.start == DryRun::Start::one_node) {
            row("rendezvous", "none is needed for one node; no port is opened for it");
        } else {
            row("leads at first", text_of(dry_.leader));
            std::string ports = "not known yet: " + dry_.ports.note;
            if (dry_.ports.value)
                ports = plan_.endpoint.host + ", port " + ports_text(*dry_.ports.value);
            row("rendezvous at", ports);
            row("identity", identity());
            row("lease", seconds_text(plan_.limits.times.lease));
            row("waits for nodes",
                seconds_text(plan_.limits.times.join_timeout) + " for " +
                    std::to_string(plan_.limits.min_nodes) +
                    (plan_.limits.min_nodes == plan_.limits.max_nodes
                         ? ""
                         : ", then " + seconds_text(plan_.limits.times.last_call) + " for more"));
        }
        row("ledger", text_of(dry_.ledger) + (plan_.ledger.chosen ? " (--ledger)" : ""));
        if (is_in_etcd(plan_.ledger.place)) etcd();
    }

    void etcd() {
        const rendezvous::EtcdFiles& files = plan_.ledger.etcd;
        row("etcd's user", files.user.empty() ? "none" : "the one in " + files.user);
        if (plan_.ledger.place.tls) {
            row("etcd is believed", files.cacert.empty() ? "by the authorities of each host"
                                                         : "by the authorities in " + files.cacert);
            row("shown to etcd", files.cert.empty() ? "no certificate" : files.cert);
        }
        row("entries are sealed", plan_.identity.secret_file.empty()
                                      ? "no (no --secret-file): who may write to etcd is believed"
                                      : "with the secret in " + plan_.identity.secret_file);
    }

    static std::string ports_text(const std::vector<int>& ports) {
        std::string text;
        for (const int port : ports) text += (text.empty() ? "" : ", else ") + std::to_string(port);
        return text;
    }

    // In the order in which a job tries them (rendezvous/secret/secret.h).
    std::string identity() const {
        using rendezvous::IdentityMode;
        if (plan_.identity.mode == IdentityMode::none) return "no proof is asked for";
        if (!plan_.identity.secret_file.empty())
            return "the secret in " + plan_.identity.secret_file;
        return std::string("MUNGE where it runs, else ") +
               (!folder_of(plan_.ledger.place).empty() ? "a file in the ledger's folder, else "
                                                       : "") +
               (plan_.identity.mode == IdentityMode::require ? "the job does not start"
                                                             : "none, with a warning");
    }

    // Numbers that follow from an "auto" setting are shown with what it means for them.
    void failure() {
        title(kFailureTitle);
        row("restarts",
            plan_.limits.max_restarts == rendezvous::kAutoRestarts
                ? std::to_string(dry_.restarts) + ", but none before the workers have met (auto)"
                : std::to_string(dry_.restarts));
        row("crash loop", plan_.limits.crash_loop == 0
                              ? "off"
                              : "gives up after " + std::to_string(plan_.limits.crash_loop) +
                                    " consecutive failures with the same cause");
        row("hang timeout", plan_.limits.hang_auto ? "auto"
                            : plan_.limits.hang_timeout.count() == 0
                                ? "off"
                                : seconds_text(plan_.limits.hang_timeout));
        if (plan_.recorders.opens_server)
            row("flight recorder", "asked when all ranks stand still");
        row("SIGTERM to SIGKILL", seconds_text(plan_.grace.final_stop) + " at the end, " +
                                      seconds_text(plan_.grace.restart) + " at a restart");
        if (!plan_.grace.helpers)
            row("left running", "what workers leave when they succeed runs on");
        else if (*plan_.grace.helpers > Duration{})
            row("left running",
                "waited for, up to " + seconds_text(*plan_.grace.helpers) + ", after success");
        row("unkillable after", seconds_text(plan_.grace.killed));
        if (!plan_.on_failure.empty()) row("on failure", plan_.on_failure);
        if (!plan_.on_event.empty()) row("on event", plan_.on_event);
        row("signals that stop", signals(plan_.signals));
        row("passed on", signals(plan_.passed_on));
        if (plan_.stop.in_slurm) slurm_stop();
    }

    // Only under Slurm, where the job has a time limit and can be requeued.
    void slurm_stop() {
        const agent::StopOptions& stop = plan_.stop;
        row("told before end",
            stop.before ? seconds_text(*stop.before) : "60 s, or longer where snapshots take long");
        row("requeue",
            stop.requeue == agent::RequeueMode::never ? std::string("never")
            : stop.requeue == agent::RequeueMode::always
                ? std::string("after the time limit and every SIGTERM")
                : "after the time limit" + (stop.requeue_signals.empty()
                                                ? std::string()
                                                : " and " + signals(stop.requeue_signals)));
        if (stop.requeue != agent::RequeueMode::never)
            row("starts again", plan_.requeue_begin
                                    ? std::to_string(plan_.requeue_begin->count()) +
                                          " s after the requeue, if Slurm's own delay is longer"
                                    : std::string("after Slurm's own delay"));
        if (plan_.limits.max_nodes > 1)
            row("waits when requeued", seconds_text(rendezvous::requeue_wait(plan_.limits.times)) +
                                           " unless the previous allocation has recorded its end");
        if (plan_.limits.max_nodes > 1)
            row("batch host lost", plan_.end_headless ? "the allocation is ended at the end"
                                                      : "the allocation is kept at the end");
    }

    static std::string signals(const std::vector<int>& numbers) {
        std::vector<std::string> names;
        for (const int number : numbers) names.push_back(agent::signal_name(number));
        return names.empty() ? "none" : joined(names, ", ");
    }

    // Which lines get a label, in words: all of them, or those of --tee.
    std::string labelled() const {
        const agent::OutputPlan& plan = plan_.workers.output;
        // On one node it depends on the number of workers, so it is open when that is.
        const bool known = plan_.limits.max_nodes > 1 || dry_.workers_per_node.value;
        if (plan.label == agent::Label::none || !known) return "";
        const std::string what =
            plan.host.empty() || !plan.prefix_template.empty() ? "rank" : "host and rank";
        return plan.label == agent::Label::all ? ", each line with its " + what
                                               : ", lines of --tee with their " + what;
    }

    void output() {
        title(kOutputTitle);
        std::vector<int> shown;
        for (std::size_t i = 0; i < plan_.workers.output.ranks.size(); ++i)
            if (plan_.workers.output.ranks[i].shown) shown.push_back(static_cast<int>(i));
        const bool all = shown.size() == plan_.workers.output.ranks.size();
        const std::string label = labelled();
        row("on the console", all             ? "what all workers print" + label
                              : shown.empty() ? "nothing of this node's workers"
                                              : "local ranks " + number_ranges(shown) + label);
        row("log folder",
            plan_.log_dir.empty() ? "none" : plan_.log_dir + "  (X below: chosen at the start)");
        for (const DryRun::Worker& worker : dry_.workers)
            for (const std::string& file : worker.files) row("file", file);
        for (const std::string& file : dry_.files) row("file", file);
    }

    void worker() {
        title(kWorkerTitle);
        row("command",
            shell_line(dry_.workers.empty() ? plan_.workers.argv : dry_.workers.front().argv));
        if (plan_.program.python) row("interpreter", plan_.workers.argv.front());
        row("role", plan_.workers.role);
        for (const DryRun::Worker& one : dry_.workers) {
            // With --virtual-local-rank each worker sees its own GPU only.
            const bool alone = !plan_.workers.more.empty() && one.devices.size() == 1;
            std::string text = one.devices.empty() ? "no GPU known"
                               : alone             ? "GPU " + one.devices.front() + " alone"
                                       : "GPUs " + joined(one.devices, ",") + " visible";
            text += one.cpus.empty() ? "; all CPUs" : "; CPUs " + number_ranges(one.cpus);
            row("local rank " + std::to_string(one.local_rank), text);
            // Commands differ only where ${local_rank} occurs in them; printing the common one
            // again says nothing.
            if (one.argv != dry_.workers.front().argv) row("", shell_line(one.argv));
        }
        if (dry_.workers.empty()) row("devices, CPUs", "not known yet: those of each node");
    }

    void variables() {
        if (dry_.variables.empty()) return;
        // The variables are those of one worker. Its rank is the clearest name for it, where it is
        // known.
        const auto rank = std::ranges::find(dry_.variables, "RANK", &DryRun::Variable::name);
        title(rank != dry_.variables.end() && rank->value.value
                  ? "Variables of rank " + *rank->value.value
                  : "Variables of the first worker of this node");
        for (const DryRun::Variable& variable : dry_.variables)
            text_ += "  " + variable.name + (variable.value.value ? "=" : " is ") +
                     text_of(variable.value) + "\n";
    }

    // Which options were given, and where: "--lease             20  (site.toml:3)".
    void options() {
        if (dry_.options.empty()) return;
        title("Options, and where they come from");
        for (const OptionOrigin& one : dry_.options)
            row("--" + std::string(one.row->name),
                (one.value.empty() ? "" : shell_line({one.value}) + "  ") + "(" +
                    (one.source == OptionSource::command_line ? "command line" : one.where) + ")");
    }

    void sentences(const char* name, const std::vector<std::string>& some) {
        if (some.empty()) return;
        title(name);
        for (const std::string& sentence : some) text_ += "  " + sentence + "\n";
    }

    const DryRun& dry_;
    const Plan& plan_;
    std::string text_;
};

}  // namespace

std::string dry_run_text(const DryRun& dry) { return Writer(dry).text(); }

std::string dry_run_line(const DryRun& dry) {
    return count_text(dry.plan.slots, "worker") + ": " + dry.plan.slots_reason;
}

}  // namespace ddprun::launcher

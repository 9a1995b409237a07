// Writes the metrics (metrics_text.h).
#include "operator/page/metrics_text.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <map>

#include "base/printable.h"
#include "rendezvous/model/job_status.h"
#include "rendezvous/rules/time_spent.h"

namespace ddprun::launcher {
namespace {

using rendezvous::LedgerEntry;
using rendezvous::NodeStatus;

std::string escaped(std::string_view text) {
    std::string safe;
    for (const char c : printable(text.substr(0, 300))) {
        if (c == '\\' || c == '"') safe += '\\';
        safe += c;
    }
    return safe;
}

// The shortest text that gives the same number again.
std::string number_text(double number) {
    std::array<char, 40> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
    return {text.data(), end};
}

std::string label_word(std::string word) {
    for (char& c : word)
        if (c == ' ') c = '_';
    return word;
}

class Page {
  public:
    Page(std::string_view run, MetricsFormat format)
        : run_("run=\"" + escaped(run) + "\""), open_(format == MetricsFormat::openmetrics) {}

    // Names without the suffix that their type asks for.
    void gauge(const std::string& name, const std::string& help) {
        begin(name, "gauge", help);
        sample_ = name;
    }
    void counter(const std::string& name, const std::string& help) {
        begin(open_ ? name : name + "_total", "counter", help);
        sample_ = name + "_total";
    }
    void info(const std::string& name, const std::string& help) {
        begin(open_ ? name : name + "_info", open_ ? "info" : "gauge", help);
        sample_ = name + "_info";
    }
    void add(double value, const std::string& label = {}, std::string_view word = {}) {
        text_ += sample_ + "{" + run_;
        if (!label.empty()) text_ += "," + label + "=\"" + escaped(word) + "\"";
        text_ += "} " + number_text(value) + "\n";
    }
    void one_gauge(const std::string& name, const std::string& help, double value) {
        gauge(name, help);
        add(value);
    }
    std::string done() { return text_ + (open_ ? "# EOF\n" : ""); }

  private:
    void begin(const std::string& name, const std::string& type, const std::string& help) {
        text_ += "# HELP " + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
        for (const std::string unit : {"seconds", "bytes"})
            if (open_ && name.ends_with("_" + unit)) text_ += "# UNIT " + name + " " + unit + "\n";
    }

    std::string run_, sample_, text_;
    bool open_;
};

void add_generation(Page& page, const PageView& view) {
    const rendezvous::Assignment* made = view.generation();
    const control::StatusReply* told = view.answers() ? &*view.status : nullptr;
    const std::int64_t generation = told ? told->generation() : made ? made->generation.value : -1;
    if (generation < 0) return;
    page.one_gauge("ddprun_generation", "The newest generation; the first one is 0.",
                   static_cast<double>(generation));
    page.one_gauge("ddprun_world_size", "Workers of that generation.",
                   told ? told->world_size() : made->world_size);
    page.one_gauge("ddprun_restart_budget", "Restarts that the job may use up.",
                   told ? told->max_restarts() : made->max_restarts);
    page.one_gauge("ddprun_restart_budget_used", "Restarts that are used up.",
                   told ? told->restarts() : made->restarts);
}

// Sums over all nodes that this leader has heard. They grow until another node leads.
void add_usage(Page& page, const control::Usage& usage) {
    page.one_gauge("ddprun_leader_memory_bytes", "Resident memory of the leader's ddprun.",
                   static_cast<double>(usage.leader_memory()));
    page.one_gauge("ddprun_largest_memory_bytes",
                   "Resident memory of the ddprun that has most, over all nodes.",
                   static_cast<double>(usage.largest_memory()));
    page.counter("ddprun_log_bytes", "Bytes that workers have printed.");
    page.add(static_cast<double>(usage.log_bytes()));
    page.counter("ddprun_store_operations", "Requests of workers to their stores.");
    page.add(static_cast<double>(usage.store_operations()));
    page.one_gauge("ddprun_store_waiters", "Connections that wait for a key of the store.",
                   static_cast<double>(usage.store_waiters()));
}

void add_told(Page& page, const control::StatusReply& told) {
    page.one_gauge("ddprun_generation_runs", "Whether the newest generation runs.", told.runs());
    if (told.since() > 0)
        page.one_gauge("ddprun_generation_since_timestamp_seconds",
                       "Since when it runs, or since when nodes are gathered.",
                       in_seconds(Duration{told.since()}));
    page.one_gauge("ddprun_waiting", "Whether the job waits for something.",
                   !told.waiting_for().empty());
    page.one_gauge("ddprun_stopping", "Whether a stop is under way.", !told.stopping().empty());
    page.one_gauge("ddprun_standstill", "Whether workers wait for one that does not move.",
                   !told.standstill().empty());
    page.one_gauge("ddprun_min_nodes", "Nodes that the job needs.", told.min_nodes());
    page.one_gauge("ddprun_max_nodes", "Nodes that the job can use.", told.max_nodes());
    page.gauge("ddprun_nodes", "Nodes in each state.");
    std::map<std::string, int> counts;
    for (const control::Node& node : told.nodes()) ++counts[node.state()];
    for (int i = 0; i <= static_cast<int>(NodeStatus::State::out_of_service); ++i) {
        const std::string state = rendezvous::to_string(static_cast<NodeStatus::State>(i));
        page.add(counts[state], "state", label_word(state));
    }
    if (told.step() >= 0)
        page.one_gauge("ddprun_step", "The newest step that a worker has reported.",
                       static_cast<double>(told.step()));
    if (told.snapshot() >= 0)
        page.one_gauge("ddprun_snapshot_step", "The step of the newest snapshot.",
                       static_cast<double>(told.snapshot()));
    if (told.has_ends())
        page.one_gauge("ddprun_time_limit_timestamp_seconds", "When the time of the job is over.",
                       in_seconds(Duration{told.ends()}));
    add_usage(page, told.usage());
}

void add_recorded(Page& page, const PageView& view) {
    const LedgerEntry* newest = view.newest();
    if (!newest) return;
    // The newest that has them: an entry that begins an allocation has none.
    rendezvous::RestartTotals totals;
    for (const rendezvous::DatedEntry& dated : view.history.entries)
        if (dated.entry.restart.totals.restarts >= totals.restarts)
            totals = dated.entry.restart.totals;
    page.counter("ddprun_restarts", "Restarts by cause; planned and requeue use up no budget.");
    for (std::size_t i = 0; i < rendezvous::kRestartCauses; ++i)
        page.add(totals.causes[i], "cause", rendezvous::kRestartCauseNames[i]);
    page.counter("ddprun_restart_phase_seconds", "Time that restarts took, by phase.");
    for (std::size_t i = 0; i < rendezvous::kRestartPhases; ++i)
        page.add(in_seconds(totals.took[i]), "phase",
                 label_word(rendezvous::kRestartPhaseNames[i]));
    page.counter(
        "ddprun_time_seconds",
        "Where the time went. The first progress of a job moves training to setting_up, and its "
        "first snapshot moves it to lost, once each.");
    for (const rendezvous::TimePart& part : rendezvous::parts_of(newest->time.spent))
        page.add(in_seconds(part.took), "part", part.name);
    if (newest->time.at > Duration{})
        page.one_gauge("ddprun_time_recorded_timestamp_seconds",
                       "Until when the sums are recorded: the begin of a generation, or the end.",
                       in_seconds(newest->time.at));
    page.one_gauge("ddprun_ended", "Whether the end of the job is recorded.",
                   newest->end() ? 1 : 0);
    if (newest->end())
        page.one_gauge("ddprun_exit_code", "The code with which the job has ended.",
                       newest->end()->code);
}

}  // namespace

std::string metrics_text(const PageView& view, Duration now, std::string_view version,
                         MetricsFormat format) {
    Page page(view.job.name, format);
    page.info("ddprun", "Which ddpctl tells this.");
    page.add(1, "version", version);
    page.one_gauge("ddprun_up", "Whether the leader of the job answers.", view.answers());
    if (view.answers() || view.heard > Duration{})
        page.one_gauge("ddprun_last_word_age_seconds",
                       "For how long the leader has not answered; 0 while it does.",
                       view.answers() ? 0 : in_seconds(now - view.heard));
    add_generation(page, view);
    if (view.answers()) add_told(page, *view.status);
    add_recorded(page, view);
    return page.done();
}

}  // namespace ddprun::launcher

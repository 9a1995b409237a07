// The metrics of a job, for Prometheus (launcher/README.md lists them). Pure.
//
// Labels are few: every sample has `run`, the name of the job's ledger, so that several jobs of a
// host can lie beside each other, and some have one of a closed list of states, causes or phases.
// What nobody knows is left out: while the leader does not answer, there is no sample of what only
// it can tell. Sums are from the ledger, which is written when a generation begins or the job ends.
#pragma once

#include <string>
#include <string_view>

#include "operator/page/page_view.h"

namespace ddprun::launcher {

// The two formats differ in how counters and information are declared, and in the end mark.
enum class MetricsFormat {
    prometheus,   // the text format 0.0.4: for node_exporter's textfile collector, and promtool
    openmetrics,  // OpenMetrics 1.0.0, as Prometheus asks for it
};
std::string metrics_text(const PageView& view, Duration now, std::string_view version,
                         MetricsFormat format);

}  // namespace ddprun::launcher

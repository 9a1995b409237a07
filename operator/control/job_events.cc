// Compares two looks (job_events.h).
#include "operator/control/job_events.h"

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/count_text.h"
#include "base/printable.h"
#include "base/utc_text.h"
#include "operator/control/control_messages.h"

namespace ddprun::rendezvous {
namespace {

// An event of a job's texts, when they have become another.
void changed(std::vector<JobEvent>& events, const char* kind, const std::string& before,
             const std::string& now) {
    if (!now.empty() && now != before) events.push_back({kind, now});
}

}  // namespace

std::vector<JobEvent> events_between(const control::StatusReply* before,
                                     const control::StatusReply& now) {
    static const control::StatusReply kNothing;
    const control::StatusReply& old = before ? *before : kNothing;
    std::vector<JobEvent> events;
    changed(events, "leader", old.leader(), now.leader());
    if (!events.empty()) events.back().sentence += " leads";
    changed(events, "stopping", old.stopping(), now.stopping());
    const bool ran = before && old.runs();
    const bool next = now.generation() != old.generation();
    if (ran && (!now.runs() || next)) {
        // What made the next one necessary, unless others came between two looks.
        const std::string why = !next                                      ? now.ended_by()
                                : now.generation() == old.generation() + 1 ? now.cause()
                                                                           : "";
        events.push_back({"generation",
                          "generation " + std::to_string(old.generation()) + " has ended" +
                              (why.empty() ? "" : ": " + why),
                          old.generation()});
    }
    if (now.runs() && (!ran || next))
        events.push_back({"generation", "generation " + std::to_string(now.generation()) +
                                            " runs with " + count_text(now.world_size(), "worker") +
                                            ": " + now.cause()});
    changed(events, "waiting", old.waiting_for(), now.waiting_for());
    changed(events, "standstill", old.standstill(), now.standstill());
    if (ran && now.runs() && !next && !old.standstill().empty() && now.standstill().empty())
        events.push_back({"standstill", "its workers move again"});
    // Two processes of one host may have one name.
    std::set<std::pair<std::string, std::string>> states;
    for (const control::Node& node : old.nodes()) states.emplace(node.name(), node.state());
    for (const control::Node& node : now.nodes())
        if (before && !states.contains({node.name(), node.state()}))
            events.push_back({"node", node.name() + " is " + node.state() +
                                          (node.why().empty() ? "" : ": " + node.why())});
    if (now.has_ended() && !old.has_ended())
        events.push_back({"end", "the job has ended with code " +
                                     std::to_string(now.ended().code()) + ": " +
                                     now.ended().sentence()});
    for (JobEvent& event : events)
        if (event.generation < 0) event.generation = now.generation();
    return events;
}

std::string event_text(const JobEvent& event, const control::StatusReply& at) {
    return utc_text(Duration{at.now()}) + "  " + printable(event.sentence) + "\n";
}

std::string event_json(const JobEvent& event, const control::StatusReply& at) {
    using Json = nlohmann::ordered_json;
    const Json json{{"time", utc_text(Duration{at.now()})},
                    {"event", event.kind},
                    {"sentence", event.sentence},
                    {"run_id", at.run_id()},
                    {"generation", event.generation >= 0 ? Json(event.generation) : Json()}};
    return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::function<std::vector<std::string>(const JobStatus* job, const std::optional<Ending>& ending,
                                       Duration now)>
event_texts() {
    return [before = std::optional<control::StatusReply>()](
               const JobStatus* job, const std::optional<Ending>& ending, Duration now) mutable {
        std::vector<std::string> texts;
        if (!job) {
            before.reset();
            return texts;
        }
        auto reply = to_reply(*job, ending, now);
        for (const JobEvent& event : events_between(before ? &*before : nullptr, reply))
            texts.push_back(event_json(event, reply));
        before = std::move(reply);
        return texts;
    };
}

}  // namespace ddprun::rendezvous

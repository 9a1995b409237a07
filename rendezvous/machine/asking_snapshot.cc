// A snapshot that an operator asks the workers for, and a stop that waits for it (PROTOCOL.md, rule
// 27). Part of the rendezvous machine.
#include "rendezvous/machine/machine_state.h"
#include "rendezvous/model/stop_sentences.h"

namespace ddprun::rendezvous {
namespace {

using Answer = OperatorAnswer;

// Behind an answer. `newest`: that this generation has reported.
std::string hint(std::int64_t newest) {
    return newest >= 0 ? ""
                       : " (none has been in this generation: a program that does not look for the "
                         "file of DDPRUN_SNAPSHOT_FILE writes none)";
}

}  // namespace

// The Acks carry the request until it is answered, so a connection that is lost loses none.
Answered MachineState::snapshot_for(Time now, const std::string& by) {
    if (is_ending()) return {Answer::refused, "the job is ending: " + why_it_ends()};
    if (const std::string why = why_not_now(); !why.empty()) return {Answer::again, why};
    if (!any_generation()) return {Answer::refused, "there is no generation yet"};
    if (!holding()) return {Answer::again, "no generation runs at this moment"};
    if (stop.regrouping())
        return {Answer::again, "the workers are stopping, with a snapshot: " + *stop.regrouping()};
    if (snapshot.open()) return {Answer::already, "a snapshot has been " + snapshot_asked()};
    snapshot.ask(by, held()->entry);
    note(Note::Level::info, by + " has asked for a snapshot with ddpctl");
    ack_all(now);
    return {Answer::done,
            "the workers are asked for a snapshot; ddpctl status shows when one is reported" +
                hint(facts.snapshot())};
}

// Works in every phase, as a stop does. Where no generation runs, the next one is asked.
Answered MachineState::stop_after_snapshot_for(Time now, const std::string& by) {
    if (is_ending()) return stop_for(now, by);
    if (!snapshot.stop_by().empty())
        return {Answer::already, "a snapshot has been " + snapshot_asked()};
    snapshot.stop_after(by);
    if (holding() && !snapshot.open()) snapshot.generation_is_held(held()->entry);
    note(Note::Level::warn, by + " has asked with ddpctl for a stop after the next snapshot");
    ack_all(now);
    return {
        Answer::done,
        std::string(holding() ? "the workers are" : "the workers of the next generation will be") +
            " asked for a snapshot, and the job stops when one is reported; if the leader is "
            "lost before, ask again; ddpctl stop stops it at once" +
            (holding() ? hint(facts.snapshot()) : "")};
}

void MachineState::look_for_snapshot(Time now) {
    const auto answered = snapshot.reported(facts.snapshot());
    if (!answered || !holding()) return;
    const std::string step = std::to_string(facts.snapshot());
    note(Note::Level::info,
         "the snapshot for which " + answered->by + " has asked is reported: step " + step);
    if (const std::string by = snapshot.stop_by(); !by.empty() && !is_ending()) {
        begin_stop(now, {.signal = kTerminate, .reason = "a stop by " + by},
                   operators_stop(by, ", after the snapshot of step " + step));
        stop_all(now);
    }
}

// "asked for by alice@login1, none reported since; then the job stops, as bob@login1 has asked".
std::string MachineState::snapshot_asked() const {
    const std::string& stop_by = snapshot.stop_by();
    if (!snapshot.open() && stop_by.empty()) return {};
    std::string text = snapshot.open()
                           ? "asked for by " + snapshot.open()->by + ", none reported since"
                           : "asked for by " + stop_by + ", of the generation that follows";
    if (!stop_by.empty()) text += "; then the job stops, as " + stop_by + " has asked";
    return text;
}

}  // namespace ddprun::rendezvous

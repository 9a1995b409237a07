// Names and makers of endings; model.h has the table of the verdicts.
#include "base/exit_code.h"
#include "rendezvous/model/model.h"

namespace ddprun::rendezvous {

const char* to_string(Verdict verdict) {
    switch (verdict) {
        case Verdict::succeeded:
            return "succeeded";
        case Verdict::worker_failed:
            return "worker_failed";
        case Verdict::unavailable:
            return "unavailable";
        case Verdict::internal:
            return "internal";
        case Verdict::work_left:
            return "stopped_with_work_left";
        case Verdict::user_signal:
            return "stopped_by_signal";
        case Verdict::left:
            return "left";
    }
    return "internal";
}

Ending ended(Verdict verdict, int code, std::string sentence) {
    Ending ending;
    ending.verdict = verdict;
    ending.code = code;
    ending.sentence = std::move(sentence);
    return ending;
}

Ending unavailable(std::string sentence) {
    return ended(Verdict::unavailable, kUnavailableCode, std::move(sentence));
}

// Only what a stop has ended goes on later, so a plain signal says nothing of work that is left.
Ending ended_by_stop(StopCause cause, int signal, std::string sentence) {
    const int code = code_of_signal(signal);
    if (cause == StopCause::signal) return ended(Verdict::user_signal, code, std::move(sentence));
    if (cause == StopCause::node_leaves) return ended(Verdict::left, code, std::move(sentence));
    return ended(Verdict::work_left, kWorkLeftCode, std::move(sentence));
}

}  // namespace ddprun::rendezvous

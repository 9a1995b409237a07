// What is known of a job by those who only look: what its leader tells, and what lies in its
// ledger. Plain values. Times are durations since 1970.
#pragma once

#include <optional>
#include <string>

#include "operator/ddpctl/found_job.h"
#include "proto/control.pb.h"
#include "rendezvous/ledger/ledger_contents.h"

namespace ddprun::launcher {

struct PageView {
    enum class Link {
        asking,   // nobody has answered yet, and nobody has refused
        answers,  // the leader answers: what is shown is how the job stands now
        lost,     // it does not; `why` says for what reason, and it is asked again
        silent,   // this job answers nobody: only its ledger tells
        ended,    // its end is recorded
    };
    Link link = Link::asking;
    std::string why;   // for a person; of lost, silent and ended
    Duration heard{};  // when the leader was last known to answer; 0: never
    std::optional<control::StatusReply> status;
    std::optional<double> steps;  // a second
    FoundJob job;
    rendezvous::LedgerHistory history;

    bool answers() const { return link == Link::answers && status.has_value(); }
    // Null: nothing is recorded yet.
    const rendezvous::LedgerEntry* newest() const {
        return history.entries.empty() ? nullptr : &history.entries.back().entry;
    }
    // Of the newest generation that is recorded; null: there is none.
    const rendezvous::Assignment* generation() const {
        for (auto one = history.entries.rbegin(); one != history.entries.rend(); ++one)
            if (one->entry.makes_generation()) return &one->entry.assignment;
        return nullptr;
    }
};
const char* to_string(PageView::Link link);  // "answers"

}  // namespace ddprun::launcher

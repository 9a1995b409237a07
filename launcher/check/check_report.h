// The verdict of a check: what all nodes have found out, and who is missing, to rows with what is
// wrong in each and what mends it. Pure.
//
// A row is wrong only where a job would fail or be slow for it. Nodes are named, three at most and
// their number, so that a rack that is off is one line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/check/check_facts.h"
#include "rendezvous/ledger_format/ledger_place.h"

namespace ddprun::launcher {

// By rank; nothing of a node that has met the others and then did not answer.
struct CheckedJob {
    std::string run_id;
    std::vector<std::string> expected;  // nodes of the step; empty: not known
    int nodes_wanted = 1;               // how many a job would have
    std::string meeting_place;          // where the nodes have met
    rendezvous::LedgerPlace ledger;
    std::vector<std::optional<NodeFacts>> nodes;
    double seconds = 0;  // that it took
};

struct CheckRow {
    std::string name;  // nodes, network, ledger, gpus, clocks, program, space, limits
    enum class State {
        good,
        wrong,
        skipped,  // there is nothing to look at
    };
    State state = State::good;
    std::string sentence;               // what was looked at
    std::vector<std::string> findings;  // what is wrong, each with the mend; not empty: wrong
    bool operator==(const CheckRow&) const = default;
};

struct CheckReport {
    CheckedJob job;
    std::vector<CheckRow> rows;

    bool good() const;
};

// Clocks further apart than this are told: files of one node then look as if from another day.
constexpr double kClocksApart = 1.0;

CheckReport make_check_report(CheckedJob job);

// A table for people, or for programs (launcher/README.md says what each field means).
std::string check_text(const CheckReport& report);
std::string check_json(const CheckReport& report);

inline constexpr int kCheckJsonVersion = 1;  // grows when a field changes its meaning or goes

}  // namespace ddprun::launcher

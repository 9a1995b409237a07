// The report of a check: rows with what is wrong in each and how to fix it. Made from the findings
// of all nodes and from which nodes are missing. Pure.
//
// A row is `wrong` only where a job would fail or be slow for it. A finding names three nodes at
// most and counts the rest, so that a whole rack that is down is one line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/check/check_facts.h"
#include "rendezvous/ledger_format/ledger_place.h"

namespace ddprun::launcher {

// What rank 0 knows at the end of a check. `nodes` is by rank; an empty entry is a node that met
// the others and then did not answer.
struct CheckedJob {
    std::string run_id;
    std::vector<std::string> expected;  // nodes of the step; empty: not known
    int nodes_wanted = 1;               // how many a job would have
    std::string meeting_place;          // host where the nodes have met
    rendezvous::LedgerPlace ledger;
    std::vector<std::optional<NodeFacts>> nodes;
    double seconds = 0;  // how long the check took
};

// One line of the report and its findings.
struct CheckRow {
    // nodes, network, ledger, gpus, clocks, workers, warm, requeue, space or limits
    std::string name;
    enum class State {
        good,
        wrong,
        skipped,  // there is nothing to look at
    };
    State state = State::good;
    std::string sentence;               // what was looked at
    std::vector<std::string> findings;  // what is wrong, each with its fix; empty unless `wrong`
    bool operator==(const CheckRow&) const = default;
};

struct CheckReport {
    CheckedJob job;
    std::vector<CheckRow> rows;

    bool good() const;  // no row is wrong
};

// Clocks that differ by more seconds than this are a finding: times in logs and of files on
// different nodes could then not be compared.
constexpr double kClocksApart = 1.0;

CheckReport make_check_report(CheckedJob job);

// As a table for people, or as JSON for programs (launcher/README.md describes the fields).
std::string check_text(const CheckReport& report);
std::string check_json(const CheckReport& report);

// Increased when a field changes its meaning or is removed.
inline constexpr int kCheckJsonVersion = 1;

}  // namespace ddprun::launcher

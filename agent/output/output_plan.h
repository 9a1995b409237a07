// Where the workers' output goes, according to --tee, --redirects, --local-ranks-filter,
// --duplicate-*-filters, --label and --log-line-prefix-template. Pure.
#pragma once

#include <array>
#include <string>
#include <vector>

namespace ddprun::agent {

// The bits of --redirects and --tee.
constexpr int kStdout = 1, kStderr = 2;

// Which lines on the console have a prefix.
enum class Label {
    none,
    teed,  // only lines of streams with --tee, as with torchrun
    all,
};

// What happens to lines when the console is full.
enum class Overflow {
    block,  // the workers wait, as with any pipe
    drop,   // the oldest lines are dropped, but never those for a file
};

// What was asked for one rank. `redirected` and `teed` are bits.
struct RankOutput {
    int redirected = 0, teed = 0;
    bool shown = true;  // whether the rank may write to the console
};

// What was asked for all ranks of this node.
struct OutputPlan {
    std::vector<RankOutput> ranks;  // by index of the worker
    Label label = Label::all;
    std::string prefix_template;  // empty: "[n2:5]:" if `host` is known, else "[default0]:"
    std::string role = "default", hostname;
    // This node's host, in a job of several nodes: a local rank says too little there. Empty: use
    // torchrun's default.
    std::string host;
    // At a terminal, a line that several ranks print is shown once. Only with labels of ddprun's.
    bool collapse = false;
    std::array<std::vector<std::string>, 2> filters;  // for stdout and stderr; empty: none

    int to_files(int local_rank) const;  // bits: streams of a rank that go to its own files
    int to_filtered() const;             // bits: streams that have a file of the filters
    std::string prefix(int local_rank, int rank) const;  // the text before each line of a rank
    // The text before a line of several ranks of this node, of all its ranks: "[n2:4-7]:". Only
    // without a prefix_template.
    struct RankNames {
        std::vector<int> local_ranks, ranks;  // in ascending order
    };
    std::string prefix(const RankNames& several, const RankNames& all) const;
};

// Where one stream of one rank goes, besides its own file.
struct StreamPlan {
    bool console = false, prefix = false, filtered = false;
    bool operator==(const StreamPlan&) const = default;
};

// `has_file` is false if the file could not be made. Then the console gets what would have gone to
// the file only.
StreamPlan plan_stream(const OutputPlan& plan, int local_rank, int stream, bool has_file);

}  // namespace ddprun::agent

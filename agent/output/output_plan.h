// Where the workers' output is to go, as the user asked: --tee, --redirects, --local-ranks-filter,
// --duplicate-*-filters, --label and --log-line-prefix-template, for the ranks of this node. Pure.
#pragma once

#include <array>
#include <string>
#include <vector>

namespace ddprun::agent {

// Bits of --redirects and --tee.
constexpr int kStdout = 1, kStderr = 2;

// Which lines on the console have a prefix.
enum class Label {
    none,
    teed,  // those of --tee, as with torchrun
    all,
};

// What becomes of lines that the console does not take.
enum class Overflow {
    block,  // the workers wait, as for any pipe
    drop,   // the oldest lines go; never those for a file
};

struct RankOutput {
    int redirected = 0, teed = 0;
    bool shown = true;  // may write to the console
};

struct OutputPlan {
    std::vector<RankOutput> ranks;  // of the workers here
    Label label = Label::all;
    std::string prefix_template;  // empty: torchrun's "[default0]:"
    std::string role = "default", hostname;
    std::array<std::vector<std::string>, 2> filters;  // of stdout and stderr; empty: none

    int to_files(int local_rank) const;  // the streams of a rank that go to files of its own
    int to_filtered() const;             // for which there is a file of the filters
    std::string prefix(int local_rank, int rank) const;
};

// Where one stream of one rank goes besides its file.
struct StreamPlan {
    bool console = false, prefix = false, filtered = false;
    bool operator==(const StreamPlan&) const = default;
};

// `has_file`: false where it could not be made. Then the console gets what would have gone there
// alone.
StreamPlan plan_stream(const OutputPlan& plan, int local_rank, int stream, bool has_file);

}  // namespace ddprun::agent

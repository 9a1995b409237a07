// Composes names of ranks.
#include "trainer/group/rank_names.h"

#include <algorithm>

namespace ddprun::trainer {
namespace {

// Another rank may have named one that this group does not have.
int job_rank(int rank, const JobRanks& job) {
    const auto index = static_cast<std::size_t>(rank);
    return index < job.size() ? job[index] : rank;
}

std::string of_the_job(const std::vector<int>& ranks, const JobRanks& job) {
    if (job.empty()) return "";
    std::vector<int> there;
    for (int rank : ranks) there.push_back(job_rank(rank, job));
    return " (" + name_ranks(there) + " of the job)";
}

}  // namespace

JobRanks job_ranks_of_part(const JobRanks& group, const std::vector<int>& members) {
    JobRanks ranks;
    bool same = true;
    for (std::size_t i = 0; i < members.size(); ++i) {
        ranks.push_back(job_rank(members[i], group));
        same = same && ranks.back() == static_cast<int>(i);
    }
    return same ? JobRanks() : ranks;
}

std::string name_ranks(const std::vector<int>& ranks, const JobRanks& job) {
    // Messages stay readable in a job with thousands of ranks.
    constexpr std::size_t kMost = 3;
    std::string text = ranks.size() == 1 ? "rank " : "ranks ";
    const std::size_t named = std::min(ranks.size(), kMost);
    for (std::size_t i = 0; i < named; ++i) {
        if (i) text += i + 1 == ranks.size() ? " and " : ", ";
        text += std::to_string(ranks[i]);
    }
    if (ranks.size() > kMost)
        text += " and " + std::to_string(ranks.size() - kMost) + " more (" +
                std::to_string(ranks.size()) + " in all)";
    return text + of_the_job(ranks, job);
}

std::string name_rank(int rank, const JobRanks& job) { return name_ranks({rank}, job); }

std::string name_rank_of(int rank, int size, const JobRanks& job) {
    return "rank " + std::to_string(rank) + " of " + std::to_string(size) + of_the_job({rank}, job);
}

}  // namespace ddprun::trainer

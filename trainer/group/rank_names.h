// How messages name ranks of a group. A rank of a part (ProcessGroup::split) has a number there and
// another one in the job, by which logs, hosts and GPUs are found: "rank 1 (rank 3 of the job)".
//
// Pure.
#pragma once

#include <string>
#include <vector>

namespace ddprun::trainer {

// Of each rank of a group its rank in the job. Empty where the two are the same.
using JobRanks = std::vector<int>;

// Those of a part of a group with these ranks in the job. `members`: ranks of the group.
JobRanks job_ranks_of_part(const JobRanks& group, const std::vector<int>& members);

// Names at most three ranks and counts the rest: "rank 3", "ranks 1, 4 and 7", "ranks 1, 4, 7 and
// 12 more (15 in all)"; in a part "ranks 0 and 2 (ranks 1 and 5 of the job)".
std::string name_ranks(const std::vector<int>& ranks, const JobRanks& job = {});
std::string name_rank(int rank, const JobRanks& job = {});

// "rank 1 of 2", in a part "rank 1 of 2 (rank 3 of the job)".
std::string name_rank_of(int rank, int size, const JobRanks& job = {});

}  // namespace ddprun::trainer

// Recognizes a checkpoint folder whose writing was interrupted, where that is why a job failed.
//
// transformers and Accelerate write the files of `checkpoint-20` or `checkpoint_2` into the folder
// itself. A rank that is killed meanwhile leaves it torn; each start takes the newest folder and
// fails. Which files belong to a checkpoint depends on model and precision, so it is judged by an
// older folder beside it: what that one has and this one lacks, is missing. Pure.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ddprun::launcher {

// The path of a folder `checkpoint-N` or `checkpoint_N` that the last of these lines that has one
// names: an exception, and what a worker has printed. Empty: none does.
std::string checkpoint_named_in(const std::vector<std::string>& lines);

// A folder beside others, and what is directly in it.
struct CheckpointFolder {
    std::string name;
    std::set<std::string> files;
};

// Which file the folder `path` lacks, the newest whole one before it, and the command that moves
// the torn one out of the way. Nothing if it is not torn, or no older one is whole.
std::optional<std::string> torn_sentence(const std::string& path,
                                         const std::vector<CheckpointFolder>& beside);

}  // namespace ddprun::launcher

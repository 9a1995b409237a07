// What `ddpctl jobs` prints, as text and as JSON (operator/README.md). Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "operator/ddpctl/found_job.h"

namespace ddprun::launcher {

// `now`: since 1970. `folder`: where they were found.
std::string jobs_text(const std::vector<FoundJob>& jobs, const std::string& folder, Duration now,
                      bool colour);
std::string jobs_json(const std::vector<FoundJob>& jobs, const std::string& folder);

// How a job stands, in few words: "failed with 1", "no end; last entry 3 h ago".
std::string state_text(const FoundJob& job, Duration now);

// "812 B", "4.0 KiB", "1.5 MiB".
std::string size_text(std::int64_t bytes);
// "12 s", "5 m", "3 h", "12 d": cut, not rounded; of less than 0: "0 s".
std::string age_text(Duration age);

}  // namespace ddprun::launcher

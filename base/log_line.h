// The text of one log line. Pure.
#pragma once

#include <string>

#include "base/note.h"
#include "base/time.h"

namespace ddprun {

struct LogStyle {
    std::string name;    // before each sentence: "ddprun", or "ddprun n3" in a job of several nodes
    std::string node;    // for JSON, where each line names its node
    bool times = false;  // the line begins with the time of day in UTC
    bool json = false;   // one JSON object a line, always with its time
};

// With its newline. Text from outside is shown, never obeyed. `report`: a JSON text that belongs to
// the line (--log-format=json); empty: none.
std::string log_line(const LogStyle& style, Duration since_1970, const Note& note,
                     const std::string& report = {});

}  // namespace ddprun

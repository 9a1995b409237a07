// The words of ddpctl's command line: which command, with which options. The words are split by
// ddprun's own grammar (base/command_line), so both programs take options alike; options may
// stand before the command, too, and among its words. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/command_line/command_line.h"
#include "base/error.h"
#include "base/time.h"
#include "operator/ddpctl/ctl_commands.h"

namespace ddprun::launcher {

struct CtlCall {
    const Command* command = nullptr;  // null: none, and then an option that only prints is given
    std::vector<std::string> words;    // behind the command: "[NAME...]"
    std::vector<GivenOption> options;

    bool has(std::string_view option) const { return find(option) != nullptr; }
    // The last one counts; empty: not given.
    std::string value(std::string_view option) const;

  private:
    const GivenOption* find(std::string_view option) const;
};

// `words` are those after ddpctl's own name. Possible errors: usage.
Result<CtlCall> read_call(const std::vector<std::string>& words);

// An age or a time limit: "30d", "12h", "5m", "0s". Possible errors: usage.
Result<Duration> read_age(std::string_view text);

}  // namespace ddprun::launcher

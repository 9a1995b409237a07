// The products that a job may have besides the core, and what each hands to it. Only
// launcher/products.cc.in, which CMake fills in, knows with which of them this ddprun was built.
// Null: it was built without this one.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "agent/node/products.h"
#include "agent/parts/warm_findings.h"
#include "agent/workers/python_command.h"
#include "base/error.h"
#include "launcher/job/event_program.h"
#include "rendezvous/link/operator_desk.h"

namespace ddprun::launcher {

struct Products {
    agent::Products agent;                      // warm/, diagnosis/, agent/pmi/
    rendezvous::MakeOperatorDesk operators;     // operator/control/
    EventProgram::Texts (*events)() = nullptr;  // of --on-event: operator/control/, too
    // Tries without a job whether workers could be warm (warm/warm_check.h).
    agent::warm::WarmCheck (*warm_check)(
        const agent::PythonCommand& command, const std::string& temporary,
        const std::map<std::string, std::string>& environment) = nullptr;
    // Becomes the program that plays a rehearsal (rehearsal/rehearse.h); returns why it cannot.
    Error (*rehearse)(const std::string& python, const std::vector<std::string>& order) = nullptr;
    std::vector<std::string_view> missing;  // as options/product_names.h calls them
};

Products products();

}  // namespace ddprun::launcher

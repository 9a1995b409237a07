// Runs the interpreter with the bootstrap and reads its answer.
#include "warm/warm_check.h"

#include <stdlib.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <charconv>
#include <exception>

#include "base/loop/child_program.h"
#include "base/system/remove_folder.h"
#include "warm/bootstrap.h"
#include "warm/channel.h"
#include "warm/rank_variables.h"

namespace ddprun::agent::warm {
namespace {

constexpr Duration kLimit = std::chrono::seconds{30};

int count_of(const std::string& text) {
    int value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

std::string input_of(const PythonCommand& command) {
    Words plan{"script", command.script, "module", command.module, "read", command.script};
    for (const std::string& name : rank_variables({})) plan.insert(plan.end(), {"rank", name});
    std::string text;
    for (const std::string& word : plan) text.append(word).push_back('\0');
    return text;
}

WarmCheck read_answer(const std::string& output) {
    WarmCheck found;
    const std::string mark = "\nddprun-warm\t";
    const std::size_t at = output.rfind(mark);
    if (at == output.npos) {
        found.cold = "the interpreter does not read a sitecustomize from PYTHONPATH";
        return found;
    }
    Words words{""};
    for (const char c : output.substr(at + mark.size())) {
        if (c == '\n') break;
        if (c == '\t')
            words.emplace_back();
        else
            words.back().push_back(c);
    }
    if (words.front() != "ready" || words.size() != 4) {
        found.cold = words.size() > 1 ? words[1] : "the interpreter has not said why";
        return found;
    }
    found.modules = count_of(words[1]), found.files = count_of(words[2]),
    found.looks = count_of(words[3]);
    return found;
}

}  // namespace

WarmCheck warm_check(const PythonCommand& command, const std::string& temporary,
                     const std::map<std::string, std::string>& environment) {
    std::string folder = temporary + "/ddprun-check-XXXXXX";
    if (::mkdtemp(folder.data()) == nullptr || !write_bootstrap(folder)) {
        WarmCheck found;
        found.cold = "no file can be made in " + temporary;
        return found;
    }
    Words words{"env"};
    const auto path = environment.find("PYTHONPATH");
    Words variables;
    if (path != environment.end()) variables.push_back("PYTHONPATH=" + path->second);
    add_bootstrap(variables, bootstrap_folder(folder), {"DDPRUN_WARM=check"});
    words.insert(words.end(), variables.begin(), variables.end());
    words.insert(words.end(), command.interpreter.begin(), command.interpreter.end());
    words.insert(words.end(), {"-c", ""});
    boost::asio::io_context loop;
    Result<ProgramResult> result = Error(ErrorCode::internal, "nothing has run");
    boost::asio::co_spawn(loop, run_program(std::move(words), input_of(command), kLimit),
                          [&](const std::exception_ptr& failed, Result<ProgramResult> answer) {
                              if (!failed) result = std::move(answer);
                          });
    loop.run();
    remove_folder(folder);
    if (result) return read_answer(result->output);
    WarmCheck found;
    found.cold = result.error().code() == ErrorCode::timed_out
                     ? "the imports take longer than " + to_text(kLimit)
                     : result.error().sentence();
    return found;
}

}  // namespace ddprun::agent::warm

// Names of users, and the command that asks as one of them (whose_job.h).
#include "operator/ddpctl/whose_job.h"

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>

#include "base/command_line/text_parts.h"
#include "base/loop/child_program.h"

namespace ddprun::launcher {
namespace {

constexpr Duration kNameAnswers = std::chrono::seconds{5};

}  // namespace

// The name service needs shared libraries, which a static program does not have.
std::string user_name(uid_t user) {
    const std::string number = std::to_string(user);
    const auto entry = run_program_now({"getent", "passwd", number}, kNameAnswers);
    const std::string name =
        entry && entry->code == 0 ? entry->output.substr(0, entry->output.find(':')) : "";
    return name.empty() ? "#" + number : name;
}

std::string other_owner(const std::string& path) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0 || status.st_uid == ::geteuid()) return {};
    return user_name(status.st_uid);
}

std::string whose_sentence(const std::string& what, const std::string& owner, const CtlCall& call) {
    std::string command = "sudo -u " + shell_word(owner) + " ddpctl " +
                          std::string(call.command ? call.command->name : "");
    for (const GivenOption& given : call.options)
        command += " " + shell_word("--" + std::string(given.row->name) +
                                    (given.row->kind == OptionKind::flag ? "" : "=" + given.value));
    for (const std::string& word : call.words) command += " " + shell_word(word);
    return what + " is " + owner + "'s: `" + command + "`";
}

}  // namespace ddprun::launcher

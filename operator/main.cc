// ddpctl's main(): from the command line to the command that is meant.
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/release.h"
#include "base/system/boot_clock.h"
#include "base/system/out_of_resources.h"
#include "base/system/print_text.h"
#include "base/system/standard_streams.h"
#include "base/system/start_thread.h"
#include "operator/ddpctl/ask_job.h"
#include "operator/ddpctl/asking_commands.h"
#include "operator/ddpctl/ctl_text.h"
#include "operator/ddpctl/forget_rule.h"
#include "operator/ddpctl/history_text.h"
#include "operator/ddpctl/jobs_text.h"
#include "operator/ddpctl/meant_job.h"
#include "operator/ddpctl/say.h"
#include "operator/ddpctl/survey.h"
#include "operator/ddpctl/whose_job.h"
#include "operator/ddpctl/worker_commands.h"
#include "operator/page/page_commands.h"
#include "rendezvous/ledger/ledger_contents.h"

namespace {

using namespace ddprun;
using launcher::CtlCall;

int fail(const Error& error) {
    launcher::say(error.sentence());
    return launcher::ctl_exit_code(error);
}

int print(const std::string& text, int code = 0) {
    const auto printed = print_text(text);
    return printed ? code : fail(printed.error());
}

// https://no-color.org: a variable that is set and not empty.
bool in_colour() {
    const char* no = std::getenv("NO_COLOR");
    const char* terminal = std::getenv("TERM");
    return (!no || !*no) && terminal && std::string(terminal) != "dumb" &&
           ::isatty(STDOUT_FILENO) == 1;
}

int run_jobs(const CtlCall& call) {
    const auto survey = launcher::survey_all(call);
    if (!survey) return fail(survey.error());
    if (call.has("json")) return print(launcher::jobs_json(survey->jobs, survey->folder));
    return print(launcher::jobs_text(survey->jobs, survey->folder, day_now(), in_colour()));
}

Result<> remove(const launcher::FoundJob& job) {
    if (job.has_ledger())
        return rendezvous::remove_ledger(job.path, job.mark, launcher::moved_as(job));
    if (::unlink(job.path.c_str()) == 0) return {};
    return Error(ErrorCode::unavailable, job.path + ": " + std::strerror(errno));
}

int run_forget(const CtlCall& call) {
    launcher::ForgetWish wish{call.words, std::nullopt, call.has("force")};
    if (call.has("older-than")) {
        const auto age = launcher::read_age(call.value("older-than"));
        if (!age)
            return fail(usage_error("--older-than=" + call.value("older-than") + ": " +
                                    age.error().sentence()));
        wish.older_than = *age;
    }
    const auto survey = launcher::survey_ledgers(call);
    if (!survey) return fail(survey.error());
    const Duration now = day_now();
    const auto plans = launcher::plan_forgetting(survey->jobs, wish, now);
    if (!plans) return fail(plans.error());
    const bool dry_run = call.has("dry-run");
    std::vector<launcher::Forgotten> all;
    for (const launcher::ForgetPlan& plan : *plans) {
        launcher::Forgotten& one = all.emplace_back(launcher::Forgotten{plan, ""});
        if (dry_run || !plan.left.empty()) continue;
        const auto removed = remove(plan.job);
        if (!removed) one.failed = removed.error().sentence();
    }
    return print(call.has("json") ? launcher::forget_json(all, dry_run)
                                  : launcher::forget_text(all, dry_run, now),
                 launcher::forget_code(all));
}

int run_history(const CtlCall& call) {
    const auto job = launcher::find_meant(call, launcher::Wanted::any);
    if (!job) return fail(job.error());
    if (!job->owner.empty())
        return fail(
            Error(ErrorCode::refused, launcher::whose_sentence(job->name, job->owner, call)));
    if (!job->fault.empty()) return fail(Error(ErrorCode::unavailable, job->fault));
    const auto history = launcher::history_of(*job);
    if (!history) return fail(history.error());
    return print(call.has("json") ? launcher::history_json(*job, *history)
                                  : launcher::history_text(*job, *history, day_now()));
}

template <Result<std::string> (*kAsk)(const CtlCall& call)>
int run_asking(const CtlCall& call) {
    const auto text = kAsk(call);
    return text ? print(*text) : fail(text.error());
}

bool answers_yes(const std::string& question) {
    std::fputs(printable(question).c_str(), stderr);
    char answer[16] = {};
    return std::fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

int run_stop(const CtlCall& call) {
    const bool at_terminal = ::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1;
    const auto text = launcher::ask_stop(call, at_terminal ? answers_yes : launcher::AskUser());
    return text ? print(*text) : fail(text.error());
}

template <Result<launcher::Looked> (*kLook)(const CtlCall& call)>
int run_looking(const CtlCall& call) {
    const auto seen = kLook(call);
    return seen ? print(seen->text, seen->code) : fail(seen.error());
}

// Ends the process, with success, when the reader of standard output has gone: in `ddpctl events -f
// | head -n 1` the next event may be hours away. Each text is flushed when it is printed. Only a
// pipe or a socket can tell.
void end_with_reader() {
    auto thread = start_thread("the end of the reader", [] {
        for (pollfd reader{STDOUT_FILENO, 0, 0};;)
            if (::poll(&reader, 1, -1) > 0) std::_Exit(0);
    });
    if (thread) thread->detach();  // else the next text ends it
}

// The height of the terminal; 0: standard output is none.
std::size_t rows_of_terminal() {
    winsize size{};
    return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_row : 0;
}

int run_top(const CtlCall& call) {
    end_with_reader();
    int code = 0;
    bool first = true;
    const auto told = launcher::ask_top(call, rows_of_terminal, [&](const std::string& text) {
        // Home, and clear to the end: the page stands where it stood.
        const char* before = call.has("json")         ? ""
                             : rows_of_terminal() > 0 ? "\x1b[H\x1b[J"
                             : first                  ? ""
                                                      : "\n";
        first = false;
        code = print(before + text);
        return code == 0 && std::ferror(stdout) == 0;  // a reader that has gone is no error
    });
    return told ? code : fail(told.error());
}

int run_events(const CtlCall& call) {
    end_with_reader();
    int code = 0;
    const auto told = launcher::ask_events(call, [&code](const std::string& text) {
        code = print(text);
        return code == 0 && std::ferror(stdout) == 0;  // a reader that has gone is no error
    });
    return told ? code : fail(told.error());
}

int run_page(const CtlCall& call) {
    return fail(launcher::serve_page(call, this_release().version, [](const std::string& text) {
        return print(text) == 0 && std::fflush(stdout) == 0;
    }));
}

int run_metrics(const CtlCall& call) {
    const auto text = launcher::ask_metrics(call, this_release().version);
    return text ? print(*text) : fail(text.error());
}

int run_logs(const CtlCall& call) {
    end_with_reader();
    int code = 0;
    launcher::LogSink sink;
    sink.print = [&code](const std::string& text) {
        code = print(text);
        return code == 0 && std::ferror(stdout) == 0;  // a reader that has gone is no error
    };
    sink.say = launcher::say;
    sink.is_terminal = ::isatty(STDOUT_FILENO) == 1;
    const auto told = launcher::ask_logs(call, sink);
    return told ? code : fail(told.error());
}

// What each command of ctl_commands.cc does.
struct Runner {
    std::string_view name;
    int (*run)(const CtlCall& call);
};
constexpr Runner kRunners[] = {
    {"status", run_looking<launcher::ask_status>},
    {"top", run_top},
    {"why", run_looking<launcher::ask_why>},
    {"events", run_events},
    {"logs", run_logs},
    {"stacks", run_asking<launcher::ask_stacks>},
    {"page", run_page},
    {"metrics", run_metrics},
    {"stop", run_stop},
    {"snapshot", run_asking<launcher::ask_snapshot>},
    {"restart", run_asking<launcher::ask_restart>},
    {"drain", run_asking<launcher::ask_drain>},
    {"limits", run_asking<launcher::ask_limits>},
    {"jobs", run_jobs},
    {"history", run_history},
    {"forget", run_forget},
};

}  // namespace

int main(int argc, char** argv) {
    end_without_resources("ddpctl", kCannotRunCode);
    have_standard_streams();
    std::signal(SIGPIPE, SIG_IGN);  // writes report EPIPE
    const auto call = launcher::read_call({argv + 1, argv + argc});
    if (!call) return fail(call.error());
    if (const auto text = launcher::ctl_printed_text(*call, this_release())) return print(*text);
    for (const Runner& runner : kRunners)
        if (runner.name == call->command->name) return runner.run(*call);
    DDPRUN_CHECK(false, "a command that nothing runs");
}

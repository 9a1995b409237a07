// The consoles of a job and the log that writes to them.
#include "launcher/job/job_voice.h"

#include <unistd.h>

#include <utility>

#include "base/system/boot_clock.h"

namespace ddprun::launcher {

JobVoice::JobVoice(boost::asio::io_context& loop, const agent::Console::Options& options)
    : log_files_(loop),
      console_files_(loop),
      one_console_(agent::same_target(STDOUT_FILENO, STDERR_FILENO)),
      out_(
          loop, console_files_, STDOUT_FILENO, one_console_ ? "stdout and stderr" : "stdout",
          [this](const Error& e) { broken(e); }, options) {
    if (!one_console_)
        own_err_.emplace(
            loop, console_files_, STDERR_FILENO, "stderr", [this](const Error& e) { broken(e); },
            options);
}

// Log lines go through the console's queue: they stand between whole lines of the workers, and the
// loop never waits for a reader.
void JobVoice::say(Note::Level level, const std::string& sentence, const std::string& report) {
    if (level >= least_) err().write(log_line(*style_, day_now(), {level, sentence}, report));
}

void JobVoice::open(LogStyle style, Note::Level least) {
    style_ = std::move(style);
    least_ = least;
}

Log JobVoice::log() {
    return [this](const Note& note) { say(note.level, note.sentence); };
}

// Files first, then stdout, then stderr: a loss of each can still be reported on the next.
JobVoice::Unread JobVoice::flush(Duration patience) {
    if (!log_files_.drain(patience))
        say(Note::Level::warn,
            "the workers' last output may be missing from their files: the file system does not "
            "answer");
    if (const auto fault = late_fault_->take()) broken(*fault);
    Unread unread{.out = out_.flush(patience)};
    if (unread.out > 0)
        say(Note::Level::warn, "the last " + std::to_string(unread.out) +
                                   " bytes of stdout are lost: nobody reads stdout");
    unread.err = own_err_ ? own_err_->flush(patience) : unread.out;
    return unread;
}

// A console may fail before the log is open; there is nowhere to report it then.
void JobVoice::broken(const Error& stream) {
    if (is_open()) say(Note::Level::warn, stream.sentence());
}

}  // namespace ddprun::launcher

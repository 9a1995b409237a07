// The consoles of a job and the log that writes to them.
#include "launcher/job/job_voice.h"

#include <unistd.h>

namespace ddprun::launcher {

JobVoice::JobVoice(boost::asio::io_context& loop, agent::Overflow overflow)
    : log_files_(loop),
      console_files_(loop),
      one_console_(agent::same_target(STDOUT_FILENO, STDERR_FILENO)),
      out_(loop, console_files_, STDOUT_FILENO, one_console_ ? "stdout and stderr" : "stdout",
           [this](const Error& e) { broken(e); }, {.overflow = overflow}) {
    if (!one_console_)
        own_err_.emplace(
            loop, console_files_, STDERR_FILENO, "stderr", [this](const Error& e) { broken(e); },
            agent::Console::Options{.overflow = overflow});
}

// Log lines go through the console's queue: they stand between whole lines of the workers, and the
// loop never waits for a reader.
void JobVoice::open(const std::string& name, Note::Level least) {
    log_.emplace(name, least, [this](const std::string& line) { err().write(line); });
}

void JobVoice::say(Note::Level level, const std::string& sentence) {
    (*log_)(Note{level, sentence});
}

Log JobVoice::log() {
    return [this](const Note& note) { (*log_)(note); };
}

// Files first, then stdout, then stderr: a loss of each can still be reported on the next.
JobVoice::Unread JobVoice::flush(Duration patience) {
    if (!log_files_.drain(patience))
        say(Note::Level::warn,
            "the workers' last output may be missing from their files: the file system does not "
            "answer");
    Unread unread{.out = out_.flush(patience)};
    if (unread.out > 0)
        say(Note::Level::warn, "the last " + std::to_string(unread.out) +
                                   " bytes of stdout are lost: nobody reads stdout");
    unread.err = own_err_ ? own_err_->flush(patience) : unread.out;
    return unread;
}

// A console may fail before the log is open; there is nowhere to report it then.
void JobVoice::broken(const Error& stream) {
    if (log_) say(Note::Level::warn, stream.sentence());
}

}  // namespace ddprun::launcher

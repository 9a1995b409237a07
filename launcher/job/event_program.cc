// Looks at the job, and runs the user's program for what is new (event_program.h).
#include "launcher/job/event_program.h"

#include <boost/asio/co_spawn.hpp>
#include <utility>

#include "base/count_text.h"
#include "base/loop/run_loop_until.h"
#include "base/system/boot_clock.h"

namespace ddprun::launcher {
namespace {

constexpr auto kLook = std::chrono::milliseconds{250};
constexpr std::size_t kWaiting = 100;

}  // namespace

EventProgram::EventProgram(boost::asio::io_context& loop, std::string program, Look look,
                           Texts texts, Warn warn, const EventLimits& limits)
    : loop_(loop),
      program_(std::move(program)),
      look_(std::move(look)),
      texts_(std::move(texts)),
      warn_(std::move(warn)),
      limits_(limits),
      timer_(loop) {}

void EventProgram::begin() {
    look(std::nullopt);
    arm();
}

void EventProgram::arm() {
    timer_.expires_after(kLook);
    timer_.async_wait([this](const boost::system::error_code& error) {
        if (error) return;
        look(std::nullopt);
        arm();
    });
}

void EventProgram::look(const std::optional<rendezvous::Ending>& ending) {
    const auto job = look_();
    for (std::string& event : texts_(job ? &*job : nullptr, ending, day_now())) {
        if (waiting_.size() == kWaiting) {
            waiting_.pop_front();
            ++left_out_;
        }
        waiting_.push_back(std::move(event));
    }
    if (job) call_next();
}

void EventProgram::call_next() {
    if (calling_ || waiting_.empty()) return;
    calling_ = true;
    std::string event = std::move(waiting_.front());
    waiting_.pop_front();
    if (const int left_out = std::exchange(left_out_, 0); left_out > 0)
        event.insert(event.rfind('}'), ",\"left_out\":" + std::to_string(left_out));
    boost::asio::co_spawn(
        loop_,
        run_program({program_}, std::move(event), ends_ ? limits_.last : limits_.call,
                    StandardError::ours),
        [this, alive = std::weak_ptr(alive_)](std::exception_ptr, Result<ProgramResult> result) {
            if (!alive.lock()) return;
            called(result);
        });
}

// Its first failure is told: it may fail at each event.
void EventProgram::called(const Result<ProgramResult>& result) {
    calling_ = false;
    std::string why;
    if (!result) why = result.error().sentence();
    if (result && result->code < 0) why = program_ + " was ended by a signal";
    if (result && result->code > 0) why = program_ + " exited with " + std::to_string(result->code);
    // It was not started, so it has not got this event.
    if (!result && result.error().code() == ErrorCode::unavailable) ++left_out_;
    if (!why.empty() && !std::exchange(warned_, true))
        warn_("--on-event: " + why + "; further failures of this program are not told");
    call_next();
}

bool EventProgram::is_idle() const { return waiting_.empty() && !calling_; }

void EventProgram::finish(const rendezvous::Ending& ending) {
    timer_.cancel();
    look(ending);
    ends_ = true;
    const auto idle = [this] { return is_idle(); };
    run_loop_until(loop_, idle, limits_.due);
    if (!is_idle()) {
        const std::size_t left_out = waiting_.empty() ? 0 : waiting_.size() - 1;
        left_out_ += static_cast<int>(left_out);
        if (left_out > 0) waiting_.erase(waiting_.begin(), waiting_.end() - 1);
        warn_("--on-event: " + program_ + " is slow or hangs; " + count_text(left_out, "event") +
              " before the end left out");
        run_loop_until(loop_, idle, limits_.call + limits_.last);
    }
    if (!is_idle()) warn_("--on-event: " + program_ + " did not get the end of the job in time");
    alive_.reset();
}

}  // namespace ddprun::launcher

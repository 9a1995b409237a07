// Decides by srun's host and by Slurm's own answers whether the job is headless, and cancels it.
#include "launcher/in_slurm/headless.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/loop/ended_by.h"

namespace ddprun::launcher {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

constexpr auto kWithError = asio::as_tuple(asio::use_awaitable);

asio::awaitable<void> wait(std::chrono::milliseconds time) {
    asio::steady_timer timer(co_await asio::this_coro::executor, time);
    co_await timer.async_wait(kWithError);
}

// Whether srun's host is alive: it accepts a connection, or refuses or resets one. A refusal needs
// a living kernel. Only silence counts as a loss.
asio::awaitable<bool> answers(const HeadlessConfig& config) {
    boost::system::error_code wrong;
    const auto address = asio::ip::make_address(config.srun_address, wrong);
    if (wrong) co_return true;  // without an address nothing can be proved: leave the job alone
    tcp::socket socket(co_await asio::this_coro::executor);
    asio::steady_timer timer(socket.get_executor());
    const auto connected =
        co_await ended_by(timer, std::chrono::steady_clock::now() + config.connecting,
                          socket.async_connect(tcp::endpoint(address, config.port), kWithError));
    if (!connected) co_return false;
    const auto [error] = *connected;
    co_return !error || error == asio::error::connection_refused ||
        error == asio::error::connection_reset;
}

}  // namespace

asio::awaitable<void> end_if_headless(HeadlessConfig config, const SlurmCalls& slurm,
                                      std::function<void(Note::Level, const std::string&)> say) {
    using Clock = std::chrono::steady_clock;
    const auto deadline = Clock::now() + config.patience;
    std::optional<slurm::ShownJob> job;  // as Slurm has shown it last
    const auto spelled = [&] { return (job ? job->id : config.job).spelled(); };
    // srun's host is asked again in each turn: it may only have been slow.
    for (bool first = true;; first = false) {
        if (co_await answers(config)) co_return;
        // No answer of Slurm: ask again later.
        const auto shown = co_await slurm.show_job();
        if (shown) job = *shown;
        // The job runs again in another allocation, which is not ours to end.
        if (shown && shown->restarts.value_or(config.restart_count) > config.restart_count)
            co_return;
        if (shown && shown->script == slurm::BatchScript::none) co_return;
        if (shown && shown->script == slurm::BatchScript::lost) break;
        if (first)
            say(Note::Level::info, "srun's host does not answer; ddprun ends job " + spelled() +
                                       " as soon as Slurm notices the loss (--headless=keep keeps "
                                       "it)");
        // Slurm may never notice, e.g. with a very large SlurmdTimeout. The user then gets the
        // command to do it.
        if (Clock::now() > deadline) {
            say(Note::Level::warn, "job " + spelled() +
                                       " keeps its nodes: srun's host does not answer, but Slurm "
                                       "does not report it as lost; end the job with scancel " +
                                       spelled());
            co_return;
        }
        co_await wait(config.between);
    }
    const std::string name = "job " + spelled();
    // The user may run other steps in the same allocation (a second training, a monitor).
    // Cancelling the allocation would end these too, so it is left to them.
    const auto steps = co_await slurm.steps(*job);
    if (!steps || !job->has_only_step(*steps, config.step_id)) {
        say(Note::Level::info,
            name +
                " has lost its batch host, but ddprun does not end it: other steps may still run");
        co_return;
    }
    const auto cancelled = co_await slurm.cancel(*job);
    if (cancelled)
        say(Note::Level::info, name + " has lost its batch host; ddprun has cancelled it");
    else
        say(Note::Level::warn, name +
                                   " has lost its batch host, but ddprun cannot end it: scancel: " +
                                   cancelled.error().sentence());
}

}  // namespace ddprun::launcher

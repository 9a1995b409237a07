// Asks for the GPUs, then for the processes on them.
#include "diagnosis/looks/gpu_question.h"

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <utility>

#include "base/loop/child_program.h"
#include "base/loop/in_time.h"
#include "base/system/boot_clock.h"
#include "diagnosis/stacks/kernel_stack.h"
#include "diagnosis/standstill/gpu_use.h"

namespace ddprun::agent {
namespace {

using Processes = std::vector<std::int64_t>;

// For one question, and for the look at the workers' children.
constexpr auto kLimit = std::chrono::seconds{3}, kLookLimit = std::chrono::seconds{2};
constexpr std::size_t kChildren = 64;

Duration left_of(Duration limit, Time until) {
    return std::max(Duration{}, std::min<Duration>(limit, until - boot_now()));
}

// What is passed on to co_await has a name: GCC 12 destroys a closure without one twice.
boost::asio::awaitable<std::vector<std::string>> ask(Processes workers, Time until) {
    std::vector<std::string> texts(workers.size());
    const auto first = ask_for_gpus(), second = ask_for_gpu_processes();
    const auto gpus = co_await run_program(first, {}, left_of(kLimit, until));
    if (!gpus || gpus->code != 0) co_return texts;
    const auto processes = co_await run_program(second, {}, left_of(kLimit, until));
    if (!processes || processes->code != 0) co_return texts;
    const auto find_families = [workers] {
        std::vector<Processes> all;
        for (const std::int64_t worker : workers) all.push_back(with_children(worker, kChildren));
        return all;
    };
    const auto families = co_await in_time(left_of(kLookLimit, until), find_families);
    if (!families) co_return texts;
    const std::vector<GpuUse> use = gpu_use(gpus->output, processes->output);
    for (std::size_t i = 0; i < workers.size(); ++i) texts[i] = gpus_of(use, (*families)[i]);
    co_return texts;
}

}  // namespace

void gpus_in_use(boost::asio::io_context& loop, const Processes& workers, Duration limit,
                 std::function<void(std::vector<std::string>)> done) {
    boost::asio::co_spawn(loop, ask(workers, boot_now() + limit),
                          [count = workers.size(), done = std::move(done)](
                              const std::exception_ptr& failed, std::vector<std::string> texts) {
                              if (failed) texts.clear();
                              texts.resize(count);
                              done(std::move(texts));
                          });
}

}  // namespace ddprun::agent

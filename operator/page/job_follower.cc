// Asks and reads, again and again (job_follower.h).
#include "operator/page/job_follower.h"

#include <grpcpp/client_context.h>
#include <grpcpp/support/sync_stream.h>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <thread>
#include <utility>

#include "base/system/start_thread.h"
#include "operator/ddpctl/status_text.h"
#include "operator/ddpctl/survey.h"

namespace ddprun::launcher {
namespace {

namespace asio = boost::asio;

constexpr Duration kOneTry = std::chrono::seconds{5};
constexpr std::chrono::seconds kAskAgain{1}, kReadAgain{5};
// A job that has ended, or answers nobody, may be started again by Slurm.
constexpr std::chrono::seconds kLookAgain{5};

}  // namespace

struct JobFollower::State : std::enable_shared_from_this<State> {
    State(asio::io_context& loop, AskedJob job, Told told)
        : loop(loop),
          job(std::move(job)),
          told(std::move(told)),
          files(loop),
          timer(loop),
          found(this->job.job()) {}

    // On the thread that asks.
    void ask();
    void watch(AskedJob::Stub& stub);
    void tell_link(PageView::Link link, const std::string& why);
    // On the loop.
    void read();
    void read_later();

    asio::io_context& loop;
    AskedJob job;  // of the thread that asks
    Told told;
    FileThread files;
    asio::steady_timer timer;
    const FoundJob found;      // as of the start
    std::int64_t newest = -1;  // entry that has been told
    std::int64_t generation = -1;
    PageView::Link last_link = PageView::Link::asking;
    bool reading = false;
};

void JobFollower::State::tell_link(PageView::Link link, const std::string& why) {
    asio::post(loop, [self = shared_from_this(), link, why] {
        self->told.link(link, why);
        if (std::exchange(self->last_link, link) != link) self->read();
    });
}

// Reads until the stream breaks.
void JobFollower::State::watch(AskedJob::Stub& stub) {
    grpc::ClientContext context;
    const auto stream = stub.Watch(&context, {});
    control::StatusReply now;
    StepRate rate;
    while (stream->Read(&now)) {
        const auto steps = rate.at(now);
        asio::post(loop, [self = shared_from_this(), now, steps] {
            self->last_link = PageView::Link::answers;
            self->told.status(now, steps);
            const bool is_other =
                std::exchange(self->generation, now.generation()) != now.generation();
            if (is_other || now.has_ended()) self->read();
        });
    }
    const grpc::Status status = stream->Finish();
    if (!status.ok()) tell_link(PageView::Link::lost, to_error(status).sentence());
}

void JobFollower::State::ask() {
    for (;;) {
        std::chrono::seconds wait = kAskAgain;
        if (const auto stub = job.connect(kOneTry, AskedJob::NobodyLeads::tell)) {
            watch(**stub);
        } else {
            const PageView::Link link = link_after(stub.error(), job.job());
            if (link != PageView::Link::lost) wait = kLookAgain;
            const bool nobody = stub.error().code() == ErrorCode::timed_out;
            tell_link(link, (nobody ? "nobody leads now: " : "") + stub.error().sentence());
        }
        job.drop();
        std::this_thread::sleep_for(wait);
    }
}

void JobFollower::State::read_later() {
    timer.expires_after(kReadAgain);
    timer.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
        const auto self = weak.lock();
        if (self && !error) self->read();
    });
}

void JobFollower::State::read() {
    if (std::exchange(reading, true)) return;
    const auto news = std::make_shared<std::optional<LedgerNews>>();
    files.post([news, found = found, newest = newest] { *news = read_ledger(found, newest); },
               [self = shared_from_this(), news] {
                   self->reading = false;
                   if (*news) {
                       self->newest = (*news)->history.entries.empty()
                                          ? -1
                                          : (*news)->history.entries.back().entry.number.value;
                       self->told.ledger((*news)->job, std::move((*news)->history));
                   }
                   self->read_later();
               });
}

JobFollower::JobFollower(asio::io_context& loop, AskedJob job, Told told)
    : state_(std::make_shared<State>(loop, std::move(job), std::move(told))) {}

JobFollower::~JobFollower() = default;

Result<> JobFollower::start() {
    state_->read();
    auto thread = start_thread("asking the job", [state = state_] { state->ask(); });
    if (!thread) return thread.error();
    thread->detach();
    return {};
}

std::optional<LedgerNews> read_ledger(const FoundJob& job, std::int64_t newest) {
    auto found = look_again(job);
    if (!found || !found->has_ledger()) return std::nullopt;
    LedgerNews news{std::move(*found), {}};
    if (!news.job.newest || news.job.newest->number.value == newest) return std::nullopt;
    auto history = history_of(news.job);
    if (history)
        news.history = std::move(*history);
    else
        news.history.fault = history.error();
    return news;
}

PageView::Link link_after(const Error& error, const FoundJob& job) {
    if (!end_sentence(job).empty()) return PageView::Link::ended;
    return error.code() == ErrorCode::not_found ? PageView::Link::silent : PageView::Link::lost;
}

}  // namespace ddprun::launcher

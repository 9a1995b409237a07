// The rpcs of Control, and who watches (control.h).
#include "operator/control/control.h"

#include <boost/asio/steady_timer.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "base/system/boot_clock.h"
#include "operator/control/control_messages.h"
#include "operator/control/reply_stream.h"
#include "operator/control/request_queue.h"
#include "proto/control.grpc.pb.h"

namespace ddprun::rendezvous {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

using Watcher = ReplyStream<control::StatusReply>;

constexpr std::chrono::milliseconds kLookAgain{250};
// What the processes use is no change, so a job that does not change is told again after this.
constexpr Duration kTellAgain = std::chrono::seconds{10};
constexpr std::size_t kNameLimit = 256;

grpc::Status to_status(const Answered& answered) {
    switch (answered.answer) {
        case OperatorAnswer::done:
        case OperatorAnswer::already:
            return grpc::Status::OK;
        case OperatorAnswer::again:
            return {grpc::StatusCode::UNAVAILABLE, printable(answered.sentence), kSaid};
        case OperatorAnswer::refused:
            return {grpc::StatusCode::FAILED_PRECONDITION, printable(answered.sentence)};
        case OperatorAnswer::unknown_node:
            return {grpc::StatusCode::NOT_FOUND, printable(answered.sentence)};
    }
    return {grpc::StatusCode::INTERNAL, "unknown answer"};
}

}  // namespace

struct Control::State : std::enable_shared_from_this<State> {
    State(asio::io_context& loop, Duration to_day, OperatorHandlers handlers)
        : loop(loop),
          to_day(to_day),
          handlers(std::move(handlers)),
          queue(std::make_shared<RequestQueue>(loop)),
          timer(loop) {}

    Duration now() const { return to_day + boot_now().time_since_epoch(); }
    void watch(const std::shared_ptr<Watcher>& watcher);
    void look();
    void arm();
    void close();

    struct Rpcs;
    asio::io_context& loop;
    const Duration to_day;
    const OperatorHandlers handlers;
    const std::shared_ptr<RequestQueue> queue;
    std::unique_ptr<Rpcs> rpcs;
    std::vector<std::shared_ptr<Watcher>> watchers;
    asio::steady_timer timer;  // while there are watchers
    std::optional<JobStatus> seen;
    std::optional<Ending> ending;
    std::int64_t version = 0;
    Watcher::Reply reply;  // the newest for watchers
};

// Called on gRPC's threads. Nothing here touches the job.
struct Control::State::Rpcs : control::Control::CallbackService {
    explicit Rpcs(std::weak_ptr<State> state, std::shared_ptr<RequestQueue> queue)
        : state(std::move(state)), queue(std::move(queue)) {}
    using Context = grpc::CallbackServerContext;
    using Reactor = grpc::ServerUnaryReactor;

    // `answer(state)` runs on the loop and returns the status.
    template <class Answer>
    Reactor* on_loop(Context* context, Answer answer) {
        Reactor* const reactor = context->DefaultReactor();
        const auto request = std::make_shared<Request>(reactor);
        queue->run_later(queue, [weak = state, request, answer = std::move(answer)] {
            if (const auto self = weak.lock()) request->finish(answer(*self));
        });
        return reactor;
    }
    Reactor* act(Context* context, const std::string& by, OperatorAction action,
                 control::Done* done) {
        if (by.empty() || by.size() > kNameLimit) return refuse(context, "by");
        return on_loop(context, [by = printable(by), action = std::move(action), done](State& s) {
            const Answered answered = s.handlers.operate(by, action);
            done->set_already(answered.answer == OperatorAnswer::already);
            done->set_sentence(answered.sentence);
            return to_status(answered);
        });
    }
    static Reactor* refuse(Context* context, const std::string& field) {
        Reactor* const reactor = context->DefaultReactor();
        reactor->Finish({grpc::StatusCode::INVALID_ARGUMENT,
                         field + " must have 1 to " + std::to_string(kNameLimit) + " bytes"});
        return reactor;
    }

    Reactor* Status(Context* context, const control::StatusRequest*,
                    control::StatusReply* to) override {
        return on_loop(context, [to](State& s) {
            const auto job = s.handlers.status();
            if (!job) return leads_no_more();
            *to = to_reply(*job, s.ending, s.now());
            return grpc::Status::OK;
        });
    }
    Reactor* Why(Context* context, const control::StatusRequest*, control::WhyReply* to) override {
        return on_loop(context, [to](State& s) {
            const auto job = s.handlers.status();
            if (!job) return leads_no_more();
            *to = why(*job);
            return grpc::Status::OK;
        });
    }
    Reactor* Stop(Context* context, const control::StopRequest* asked,
                  control::Done* done) override {
        return act(context, asked->by(), StopJob{asked->after_snapshot()}, done);
    }
    Reactor* Restart(Context* context, const control::RestartRequest* asked,
                     control::Done* done) override {
        return act(context, asked->by(), RestartGeneration{Generation{asked->generation()}}, done);
    }
    Reactor* SnapshotNow(Context* context, const control::SnapshotRequest* asked,
                         control::Done* done) override {
        return act(context, asked->by(), AskSnapshot{}, done);
    }
    Reactor* SetLimits(Context* context, const control::LimitsRequest* asked,
                       control::Done* done) override {
        return act(context, asked->by(), rendezvous::SetLimits{to_limits(*asked)}, done);
    }
    Reactor* Drain(Context* context, const control::DrainRequest* asked,
                   control::Done* done) override {
        if (asked->node().empty() || asked->node().size() > kNameLimit)
            return refuse(context, "node");
        return act(context, asked->by(), DrainNode{printable(asked->node())}, done);
    }
    grpc::ServerWriteReactor<control::StatusReply>* Watch(Context*,
                                                          const control::StatusRequest*) override {
        const auto watcher = Watcher::make();
        // Dropped with the queue it ends, because nobody would ever offer it anything.
        const auto watched = std::make_shared<bool>(false);
        const std::shared_ptr<void> dropped(nullptr, [watcher, watched](void*) {
            if (!*watched) watcher->end(leads_no_more());
        });
        queue->run_later(queue, [weak = state, watcher, watched, dropped] {
            const auto self = weak.lock();
            if (!self) return;
            *watched = true;
            self->watch(watcher);
        });
        return watcher.get();
    }

    const std::weak_ptr<State> state;
    const std::shared_ptr<RequestQueue> queue;
};

// A new watcher gets what the others got last, or a fresh look if it is the first.
void Control::State::watch(const std::shared_ptr<Watcher>& watcher) {
    if (watchers.empty()) look();
    if (!reply) return watcher->end(leads_no_more());
    watcher->offer(reply);
    watchers.push_back(watcher);
    if (ending)
        watcher->end(grpc::Status::OK);
    else
        arm();
}

void Control::State::look() {
    std::erase_if(watchers, [](const auto& one) { return one->is_over(); });
    std::optional<JobStatus> job = handlers.status();
    if (!job) {
        for (const auto& watcher : watchers) watcher->end(leads_no_more());
        watchers.clear();
        reply.reset();
        return;
    }
    const bool is_fresh = reply && now() - Duration{reply->now()} < kTellAgain;
    if (is_fresh && seen == job && !ending) return;
    control::StatusReply next = to_reply(*job, ending, now());
    next.set_version(++version);
    reply = std::make_shared<const control::StatusReply>(std::move(next));
    seen = std::move(job);
    for (const auto& watcher : watchers) watcher->offer(reply);
}

void Control::State::arm() {
    timer.expires_after(kLookAgain);
    timer.async_wait([weak = weak_from_this()](error_code aborted) {
        const auto self = weak.lock();
        if (!self || aborted) return;
        self->look();
        if (!self->watchers.empty()) self->arm();
    });
}

void Control::State::close() {
    timer.cancel();
    queue->close();
    for (const auto& watcher : watchers) watcher->end(ending ? grpc::Status::OK : leads_no_more());
}

Control::Control(asio::io_context& loop, Duration to_day, OperatorHandlers handlers)
    : state_(std::make_shared<State>(loop, to_day, std::move(handlers))) {}

Control::~Control() { state_->close(); }

grpc::Service& Control::service() {
    if (!state_->rpcs) state_->rpcs = std::make_unique<State::Rpcs>(state_, state_->queue);
    return *state_->rpcs;
}

void Control::close() { state_->close(); }

void Control::ended(const Ending& ending) {
    state_->ending = ending;
    if (state_->watchers.empty()) return;
    state_->look();
    for (const auto& watcher : state_->watchers) watcher->end(grpc::Status::OK);
}

}  // namespace ddprun::rendezvous

// The rpcs of Workers, and who reads along (workers.h).
#include "operator/control/workers.h"

#include <atomic>
#include <boost/asio/post.hpp>
#include <map>
#include <utility>

#include "base/printable.h"
#include "operator/control/reply_stream.h"
#include "operator/control/request_queue.h"
#include "proto/control.grpc.pb.h"

namespace ddprun::rendezvous {

namespace asio = boost::asio;

namespace {

constexpr std::size_t kReaders = 32, kLooksAtOnce = 4;
constexpr std::size_t kReply = std::size_t{128} << 10;  // bytes of text
constexpr int kMostLines = 10'000;

using LogsStream = ReplyStream<control::LogsReply>;

grpc::Status call_status(const Error& error) {
    return {error.code() == ErrorCode::not_found ? grpc::StatusCode::NOT_FOUND
                                                 : grpc::StatusCode::UNAVAILABLE,
            printable(error.sentence())};
}
grpc::Status runs_nothing() {
    return {grpc::StatusCode::UNAVAILABLE, "this node runs no workers now"};
}
grpc::Status too_many(const std::string& what) {
    return {grpc::StatusCode::RESOURCE_EXHAUSTED, what};
}

control::LogsReply call_reply(WorkerText text, Generation generation) {
    control::LogsReply reply;
    reply.set_generation(generation.value);
    reply.set_lost_lines(text.lost_lines);
    reply.set_lost_bytes(text.lost_bytes);
    reply.set_ended(text.ended);
    for (WorkerText::Piece& piece : text.pieces) {
        control::LogsPiece& to = *reply.add_pieces();
        to.set_is_err(piece.is_err);
        to.set_text(std::move(piece.text));
    }
    return reply;
}

}  // namespace

struct Workers::State : std::enable_shared_from_this<State> {
    explicit State(asio::io_context& loop)
        : loop(loop), queue(std::make_shared<RequestQueue>(loop)) {}

    struct Reading {
        std::shared_ptr<LogsStream> stream;
        ReadWorker from;
        bool follows = false;
    };
    struct Look {
        std::shared_ptr<Request> request;
        control::StacksReply* to;  // lives as long as the request is not finished
    };
    void read(std::int64_t number, const std::shared_ptr<LogsStream>& stream,
              const control::LogsRequest& asked);
    void go_on(std::int64_t number);
    void look(const control::StacksRequest& asked, control::StacksReply* to,
              const std::shared_ptr<Request>& request);
    void looked(std::int64_t number, Result<WorkerStacks> found);
    void end_all(const grpc::Status& status);

    struct Rpcs;
    asio::io_context& loop;
    const std::shared_ptr<RequestQueue> queue;
    std::unique_ptr<Rpcs> rpcs;
    std::optional<OwnWorkers> workers;
    std::map<std::int64_t, Reading> readings;
    std::map<std::int64_t, Look> looks;  // under way
    std::int64_t newest_look = 0;
};

// Called on gRPC's threads. Nothing here touches the workers.
struct Workers::State::Rpcs : control::Workers::CallbackService {
    Rpcs(std::weak_ptr<State> state, std::shared_ptr<RequestQueue> queue)
        : state(std::move(state)), queue(std::move(queue)) {}
    using Context = grpc::CallbackServerContext;

    static grpc::Status what_is_wrong(const control::LogsRequest& asked) {
        if (asked.lines() >= 0 && asked.lines() <= kMostLines) return grpc::Status::OK;
        return {grpc::StatusCode::INVALID_ARGUMENT,
                "lines must be 0 to " + std::to_string(kMostLines)};
    }

    grpc::ServerWriteReactor<control::LogsReply>* Logs(Context*,
                                                       const control::LogsRequest* asked) override {
        const std::int64_t number = ++newest;
        const auto stream = LogsStream::make([state = state, queue = queue, number] {
            queue->run_later(queue, [state, number] {
                if (const auto self = state.lock()) self->go_on(number);
            });
        });
        if (const grpc::Status wrong = what_is_wrong(*asked); !wrong.ok()) {
            stream->end(wrong);
            return stream.get();
        }
        // Dropped with the queue it ends, because nobody would ever offer it anything.
        const auto begun = std::make_shared<bool>(false);
        const std::shared_ptr<void> dropped(nullptr, [stream, begun](void*) {
            if (!*begun) stream->end(runs_nothing());
        });
        queue->run_later(queue, [weak = state, stream, begun, dropped, number, asked = *asked] {
            const auto self = weak.lock();
            if (!self) return;
            *begun = true;
            self->read(number, stream, asked);
        });
        return stream.get();
    }
    grpc::ServerUnaryReactor* Stacks(Context* context, const control::StacksRequest* asked,
                                     control::StacksReply* to) override {
        grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
        const auto request = std::make_shared<Request>(reactor);
        queue->run_later(queue, [weak = state, request, asked = *asked, to] {
            if (const auto self = weak.lock()) self->look(asked, to, request);
        });
        return reactor;
    }

    const std::weak_ptr<State> state;
    const std::shared_ptr<RequestQueue> queue;
    std::atomic<std::int64_t> newest = 0;
};

void Workers::State::read(std::int64_t number, const std::shared_ptr<LogsStream>& stream,
                          const control::LogsRequest& asked) {
    if (!workers) return stream->end(runs_nothing());
    if (readings.size() >= kReaders)
        return stream->end(too_many(std::to_string(kReaders) +
                                    " operators read what workers of this node print; end one"));
    auto from =
        workers->read({asked.rank(), Generation{asked.generation()}},
                      static_cast<std::size_t>(asked.lines()), [weak = weak_from_this(), number] {
                          const auto self = weak.lock();
                          if (!self) return;
                          asio::post(self->loop, [weak, number] {
                              if (const auto here = weak.lock()) here->go_on(number);
                          });
                      });
    if (!from) return stream->end(call_status(from.error()));
    readings.emplace(number, Reading{stream, std::move(*from), asked.follow()});
    go_on(number);
}

// Whenever a reply has been sent, there is new text, or the reader has gone.
void Workers::State::go_on(std::int64_t number) {
    const auto found = readings.find(number);
    if (found == readings.end()) return;
    Reading& reading = found->second;
    if (reading.stream->is_over()) return void(readings.erase(found));
    if (!reading.stream->has_room() || !reading.from.reader) return;
    WorkerText text = reading.from.reader->take(kReply);
    const bool is_last = text.ended || !reading.follows;
    if (text.is_empty() && !is_last) return;
    reading.stream->offer(std::make_shared<const control::LogsReply>(
        call_reply(std::move(text), reading.from.generation)));
    if (!is_last) return;
    // It counts as a reader until the reply has been sent.
    reading.from.reader.reset();
    reading.stream->end(grpc::Status::OK);
}

void Workers::State::look(const control::StacksRequest& asked, control::StacksReply* to,
                          const std::shared_ptr<Request>& request) {
    if (!workers) return request->finish(runs_nothing());
    if (looks.size() >= kLooksAtOnce)
        return request->finish(
            too_many(std::to_string(kLooksAtOnce) +
                     " looks at processes of this node are under way; ask again"));
    const std::int64_t number = ++newest_look;
    looks[number] = {request, to};
    workers->look({asked.rank(), Generation{asked.generation()}},
                  [weak = weak_from_this(), number](Result<WorkerStacks> found) {
                      if (const auto self = weak.lock()) self->looked(number, std::move(found));
                  });
}

void Workers::State::looked(std::int64_t number, Result<WorkerStacks> found) {
    const auto look = looks.extract(number);
    if (!look) return;
    const auto& [request, to] = look.mapped();
    if (!found) return request->finish(call_status(found.error()));
    to->set_generation(found->generation.value);
    to->set_pid(found->pid);
    for (std::string& line : found->lines) to->add_lines(std::move(line));
    request->finish(grpc::Status::OK);
}

// gRPC waits for every request that is not finished.
void Workers::State::end_all(const grpc::Status& status) {
    for (const auto& [number, reading] : readings) reading.stream->end(status);
    readings.clear();
    for (const auto& [number, look] : looks) look.request->finish(status);
    looks.clear();
}

Workers::Workers(asio::io_context& loop) : state_(std::make_shared<State>(loop)) {}

Workers::~Workers() { close(); }

void Workers::serve(std::optional<OwnWorkers> workers) {
    if (!workers) state_->end_all(runs_nothing());
    state_->workers = std::move(workers);
}

grpc::Service& Workers::service() {
    if (!state_->rpcs) state_->rpcs = std::make_unique<State::Rpcs>(state_, state_->queue);
    return *state_->rpcs;
}

void Workers::close() {
    state_->queue->close();
    state_->end_all(runs_nothing());
    state_->workers.reset();
}

}  // namespace ddprun::rendezvous

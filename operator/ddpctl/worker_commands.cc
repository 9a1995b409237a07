// Finds the node of a rank, again and again while its text is followed (worker_commands.h).
#include "operator/ddpctl/worker_commands.h"

#include <grpcpp/client_context.h>
#include <grpcpp/support/sync_stream.h>

#include <charconv>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "base/count_text.h"
#include "base/printable.h"
#include "base/system/boot_clock.h"
#include "operator/ddpctl/ask_job.h"
#include "operator/ddpctl/log_lines.h"
#include "operator/ddpctl/print_parts.h"

namespace ddprun::launcher {
namespace {

// What is asked once is answered soon or not at all. Who follows waits until another leader, or
// another generation, is there.
constexpr Duration kAskedOnce = std::chrono::seconds{5}, kFollowed = std::chrono::seconds{60};
constexpr Duration kOneNode = std::chrono::seconds{5};
constexpr std::chrono::milliseconds kLookAgain{250};
constexpr std::chrono::seconds kStacksWithin{10};
constexpr int kMostLines = 10'000, kLines = 20;
// A larger reply is one of many: what is unfinished in it goes on at once.
constexpr std::size_t kSmallReply = std::size_t{64} << 10;

Result<int> number(const std::string& text, int most, const std::string& what) {
    int value = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size() && value >= 0 && value <= most)
        return value;
    return usage_error(what + ": give a whole number from 0 to " + std::to_string(most));
}

Result<int> rank_of(const CtlCall& call) {
    constexpr int kMostRanks = 1 << 24;
    if (call.words.size() == 1 || call.words.size() == 2)
        return number(call.words.back(), kMostRanks, call.words.back() + " is no rank");
    return usage_error("ddpctl " + std::string(call.command->name) +
                       " takes one rank, as ddpctl status shows them, after the name of the job if "
                       "it needs one");
}

// A rank in the newest generation.
struct Place {
    std::string node = {};
    rendezvous::CallTarget at = {};
    std::int64_t generation = -1;
    std::string cause = {};   // why there is this generation
    std::string ended = {};   // how the job has ended; empty: it goes on
    bool is_here = false;     // it is the leader, which was asked on this host
    std::string lacked = {};  // that generation has no such rank; empty: it has
};

// The job has ended: so say its leader, or its ledger.
Result<Place> if_ended(const Error& error) {
    if (error.code() != ErrorCode::not_found) return error;
    return Place{.ended = error.sentence()};
}

// What may pass is unavailable: a leader is lost, or a node of the generation has not come back.
Result<Place> place_of(AskedJob& job, int rank, Duration within) {
    const auto status = job.status(within);
    if (!status) return if_ended(status.error());
    if (status->has_ended()) return Place{.ended = end_sentence(*status)};
    if (status->generation() < 0)
        return Error(ErrorCode::not_found, "the job has no workers yet; " + status->waiting_for());
    const std::string generation = "generation " + std::to_string(status->generation());
    for (const control::Node& node : status->nodes()) {
        const int first = node.first_rank();
        if (first < 0 || rank < first || rank - first >= node.workers()) continue;
        const bool is_here = job.is_here() && node.name() == status->leader();
        if (node.port() == 0 && !is_here)
            return Error(
                ErrorCode::unavailable,
                node.name() + ": " +
                    (node.why().empty() ? "it is not known where it answers" : node.why()));
        return Place{.node = node.name(),
                     .at = {node.address(), static_cast<std::uint16_t>(node.port())},
                     .generation = status->generation(),
                     .cause = status->cause(),
                     .is_here = is_here};
    }
    return Place{.generation = status->generation(),
                 .lacked = "there is no rank " + std::to_string(rank) + ": " + generation +
                           " has ranks 0 to " + std::to_string(status->world_size() - 1)};
}

// An error of a node: asking again may help, or not.
Error error_of(const Place& place, const grpc::Status& status) {
    const bool is_final = status.error_code() == grpc::StatusCode::NOT_FOUND;
    const bool is_usage = status.error_code() == grpc::StatusCode::INVALID_ARGUMENT;
    return {is_usage   ? ErrorCode::usage
            : is_final ? ErrorCode::not_found
                       : ErrorCode::unavailable,
            place.node + ": " + status.error_message()};
}

Result<AskedJob::Connection> connect(const AskedJob& job, const Place& place, Duration limit) {
    auto connection = place.is_here ? job.connect_here_again()
                                    : job.connect_to(place.at, std::min(limit, kOneNode));
    if (connection) return connection;
    // Its ddprun may be started again: the leader answers, and knows the node.
    const ErrorCode code = connection.error().code();
    return Error(code == ErrorCode::closed ? ErrorCode::unavailable : code,
                 place.node + " does not answer: " + connection.error().sentence());
}

bool may_pass(const Error& error) { return error.code() == ErrorCode::unavailable; }

// The text of one rank, over its generations.
class Logs {
  public:
    Logs(AskedJob& job, int rank, int lines, bool follows, const LogSink& sink, LogForm form)
        : job_(job),
          rank_(rank),
          lines_(lines),
          follows_(follows),
          sink_(sink),
          printer_(form),
          is_json_(form == LogForm::json) {}

    // Goes on until all has been said, or something does not pass.
    Result<> run() {
        while (is_read_ && !is_over_) {
            const auto read = read_where_it_is();
            if (!read && (!may_pass(read.error()) || boot_now() >= until_)) return read.error();
            if (read && !follows_) return {};
            std::this_thread::sleep_for(kLookAgain);
        }
        return {};
    }

  private:
    bool has_begun() const { return generation_ >= 0; }
    void be_patient() { until_ = boot_now() + (has_begun() ? kFollowed : kAskedOnce); }

    // Nothing is wrong if the next generation is not there yet. The end of the job is what a reader
    // waits for.
    Result<> read_where_it_is() {
        const auto place = place_of(job_, rank_, has_begun() ? kFollowed : kAskedOnce);
        if (!place) return place.error();
        if (!place->ended.empty() && !has_begun()) return Error(ErrorCode::not_found, place->ended);
        is_over_ = !place->ended.empty();
        if (is_over_) say("job ended", place->ended);
        if (!place->lacked.empty()) return wait_for_rank(*place);
        const bool waits = has_ended_ && place->generation <= generation_;
        if (waits) be_patient();
        if (waits || is_over_) return {};
        auto connection = connect(job_, *place, until_ - boot_now());
        if (!connection) return connection.error();
        return read(*place, **connection);
    }

    // A smaller generation may be followed by one that has the rank again.
    Result<> wait_for_rank(const Place& place) {
        if (!has_begun()) return Error(ErrorCode::not_found, place.lacked);
        if (std::exchange(lacked_in_, place.generation) != place.generation)
            say("rank missing", place.lacked + "; waiting for a generation that has it");
        be_patient();
        return {};
    }

    Result<> read(const Place& place, rendezvous::OperatorConnection& from) {
        control::LogsRequest request;
        request.set_rank(rank_);
        request.set_generation(place.generation);
        request.set_follow(follows_);
        // What a new generation has printed by now is all of interest. In the same one, what was
        // printed while nobody was connected is unknown.
        request.set_lines(!has_begun() ? lines_ : place.generation > generation_ ? kMostLines : 0);
        grpc::ClientContext context;
        const auto stream = from.workers().Logs(&context, request);
        control::LogsReply reply;
        bool is_first = true;
        while (is_read_ && stream->Read(&reply)) {
            if (std::exchange(is_first, false)) say_where(place, reply.generation());
            print(reply);
        }
        if (!is_read_) context.TryCancel();
        const grpc::Status status = stream->Finish();
        if (!is_first) be_patient();
        print(lines_of_text_.unfinished());
        print(printer_.break_line());
        if (!is_read_ || status.ok()) return {};
        return error_of(place, status);
    }

    void say_where(const Place& place, std::int64_t generation) {
        const bool is_new = generation > generation_;
        const bool had_begun = has_begun();
        has_ended_ = false;
        generation_ = generation;
        printer_.begin(place.node, rank_, generation);
        if (!had_begun) return;
        const std::string rank = "rank " + std::to_string(rank_);
        if (is_new)
            say("goes on", rank + " goes on in generation " + std::to_string(generation) + " on " +
                               place.node + ": " + place.cause);
        else
            say("connected", place.node + " answers again; what " + rank +
                                 " printed meanwhile may be missing here");
    }

    void print(const control::LogsReply& reply) {
        if (reply.lost_bytes() > 0) {
            print(lines_of_text_.unfinished());
            print(printer_.break_line());
            const std::string bytes = count_text(reply.lost_bytes(), "byte");
            const std::string what =
                (reply.lost_lines() == 0
                     ? bytes + " of a line"
                     : count_text(reply.lost_lines(), "line") + " (" + bytes + ")") +
                " missing here: not read in time";
            say("lost", what, reply.lost_lines(), reply.lost_bytes());
        }
        std::size_t size = 0;
        for (const control::LogsPiece& piece : reply.pieces()) {
            size += piece.text().size();
            print(lines_of_text_.take(piece.is_err(), piece.text()));
        }
        if (size < kSmallReply && !is_json_) print(lines_of_text_.unfinished());
        if (!reply.ended() || has_ended_) return;
        has_ended_ = true;
        print(lines_of_text_.unfinished());
        print(printer_.break_line());
        if (follows_)
            say("generation ended",
                "generation " + std::to_string(generation_) + " has ended on this node");
    }
    void print(const std::vector<LogLine>& lines) {
        std::string text;
        for (const LogLine& line : lines) text += printer_.text(line);
        print(text);
    }
    void print(const std::string& text) {
        if (!text.empty()) is_read_ = is_read_ && sink_.print(text);
    }
    void say(const std::string& event, const std::string& sentence, std::int64_t lost_lines = -1,
             std::int64_t lost_bytes = -1) {
        if (is_json_)
            print(printer_.note(event, sentence, lost_lines, lost_bytes));
        else
            sink_.say(sentence);
    }

    AskedJob& job_;
    const int rank_, lines_;
    const bool follows_;
    const LogSink& sink_;
    LogLines lines_of_text_;
    LogPrinter printer_;
    const bool is_json_;
    bool is_read_ = true;                   // the reader is there
    std::int64_t generation_ = -1;          // that was read last
    std::int64_t lacked_in_ = -1;           // generation that is known to lack the rank
    bool has_ended_ = false;                // it has
    bool is_over_ = false;                  // the job is
    Time until_ = boot_now() + kAskedOnce;  // what passes is waited for
};

}  // namespace

Result<> ask_logs(const CtlCall& call, const LogSink& sink) {
    const auto rank = rank_of(call);
    if (!rank) return rank.error();
    const auto lines = call.has("lines") ? number(call.value("lines"), kMostLines,
                                                  "--lines=" + call.value("lines"))
                                         : Result<int>(kLines);
    if (!lines) return lines.error();
    auto job = AskedJob::find(call);
    if (!job) return job.error();
    const LogForm form = call.has("json")   ? LogForm::json
                         : sink.is_terminal ? LogForm::terminal
                                            : LogForm::plain;
    return Logs(*job, *rank, *lines, call.has("follow"), sink, form).run();
}

namespace {

Result<std::string> stacks_text(const CtlCall& call, int rank, const Place& place,
                                const control::StacksReply& reply) {
    if (call.has("json")) {
        nlohmann::ordered_json json{{"format", "ddpctl stacks"},
                                    {"version", 1},
                                    {"rank", rank},
                                    {"generation", reply.generation()},
                                    {"node", printable(place.node)},
                                    {"pid", reply.pid()}};
        json["lines"] = nlohmann::ordered_json::array();
        for (const std::string& line : reply.lines()) json["lines"].push_back(printable(line));
        return json_text(json);
    }
    std::string text = "rank " + std::to_string(rank) + " of generation " +
                       std::to_string(reply.generation()) + ": process " +
                       std::to_string(reply.pid()) + " on " + printable(place.node) + "\n";
    for (const std::string& line : reply.lines()) text += "    " + printable(line) + "\n";
    if (reply.lines().empty()) text += "    the process has ended\n";
    return text;
}

Result<std::string> stacks_once(const CtlCall& call, AskedJob& job, int rank, Time until) {
    const auto place = place_of(job, rank, kAskedOnce);
    if (!place) return place.error();
    for (const std::string& none : {place->ended, place->lacked})
        if (!none.empty()) return Error(ErrorCode::not_found, none);
    const auto connection = connect(job, *place, until - boot_now());
    if (!connection) return connection.error();
    control::StacksRequest request;
    request.set_rank(rank);
    request.set_generation(place->generation);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kStacksWithin);
    control::StacksReply reply;
    const grpc::Status status = (*connection)->workers().Stacks(&context, request, &reply);
    if (!status.ok()) return error_of(*place, status);
    return stacks_text(call, rank, *place, reply);
}

}  // namespace

Result<std::string> ask_stacks(const CtlCall& call) {
    const auto rank = rank_of(call);
    if (!rank) return rank.error();
    auto job = AskedJob::find(call);
    if (!job) return job.error();
    const Time until = boot_now() + kAskedOnce;
    for (;;) {
        auto text = stacks_once(call, *job, *rank, until);
        if (text || !may_pass(text.error()) || boot_now() >= until) return text;
        std::this_thread::sleep_for(kLookAgain);
    }
}

}  // namespace ddprun::launcher

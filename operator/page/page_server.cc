// Carries requests to the door and answers from the board (page_server.h).
#include "operator/page/page_server.h"

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <set>

#include "base/loop/accept_loop.h"
#include "base/system/boot_clock.h"

namespace ddprun::launcher {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::chrono::seconds kRequestWithin{10}, kAnswerWithin{60}, kEventWithin{30}, kBeat{5};
constexpr std::chrono::seconds kLastBytesWithin{1};
constexpr std::size_t kLastBytes = std::size_t{64} << 10;
constexpr int kSendBuffer = 128 << 10;  // the kernel doubles it

constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);

PageRequest to_request(const http::request_header<>& header) {
    PageRequest request{std::string(header.method_string()), std::string(header.target()), {}};
    for (const auto& field : header)
        request.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
    return request;
}

http::response<http::empty_body> to_response(const PageAnswer& answer) {
    http::response<http::empty_body> response{static_cast<http::status>(answer.status), 11};
    for (const auto& [name, value] : answer.headers) response.insert(name, value);
    response.keep_alive(false);
    return response;
}

// What a client gets whose bytes are no request; nothing: it has gone, or was too slow.
std::optional<PageAnswer> answer_to_error(const PageDoor& door, const error_code& error) {
    if (error == http::error::header_limit || error == http::error::buffer_overflow)
        return door.refusal(431, "a request has at most 8192 bytes here");
    if (error == http::error::end_of_stream || error == http::error::partial_message)
        return std::nullopt;
    if (error.category() == http::make_error_code(http::error::bad_method).category())
        return door.refusal(400, "this is no HTTP request");
    return std::nullopt;
}

asio::awaitable<bool> write(beast::tcp_stream& stream, asio::const_buffer bytes) {
    const auto [error, size] = co_await asio::async_write(stream, bytes, kTuple);
    co_return !error;
}

asio::awaitable<bool> write_head(beast::tcp_stream& stream,
                                 http::response<http::empty_body> response) {
    http::response_serializer<http::empty_body> serializer{response};
    const auto [error, size] = co_await http::async_write_header(stream, serializer, kTuple);
    co_return !error;
}

asio::awaitable<void> write_all(beast::tcp_stream& stream, const PageAnswer& answer,
                                std::string_view body) {
    stream.expires_after(kAnswerWithin);
    http::response<http::empty_body> response = to_response(answer);
    response.content_length(body.size());
    if (!co_await write_head(stream, std::move(response))) co_return;
    co_await write(stream, asio::buffer(body));
}

// Reads what the client has still sent, for a moment: closing with unread bytes would reset the
// connection, and the client would not see the answer.
asio::awaitable<void> close(beast::tcp_stream& stream) {
    error_code ignored;
    stream.socket().shutdown(tcp::socket::shutdown_send, ignored);
    stream.expires_after(kLastBytesWithin);
    std::array<char, 4096> bytes{};
    for (std::size_t all = 0; all < kLastBytes;) {
        const auto [error, size] = co_await stream.async_read_some(asio::buffer(bytes), kTuple);
        if (error) break;
        all += size;
    }
    stream.close();
}

// Counts for as long as it lives.
class Counted {
  public:
    explicit Counted(int& count) : count_(count) { ++count_; }
    ~Counted() { --count_; }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;

  private:
    int& count_;
};

}  // namespace

struct PageServer::State : std::enable_shared_from_this<State> {
    State(asio::io_context& loop, const PageDoor& door, PageBoard& board)
        : loop(loop), door(door), board(board) {}

    void take(tcp::socket socket);
    asio::awaitable<void> serve(tcp::socket socket);
    asio::awaitable<void> answer(beast::tcp_stream& stream, const PageAnswer& answer);
    asio::awaitable<void> follow(beast::tcp_stream& stream, const PageAnswer& answer);

    asio::io_context& loop;
    const PageDoor& door;
    PageBoard& board;
    std::unique_ptr<AcceptLoop> accepting;
    int connections = 0, subscribers = 0;
    std::set<asio::steady_timer*> waiting;  // of the subscribers; cancelled when there is news
};

void PageServer::State::take(tcp::socket socket) {
    if (connections >= kPageConnections) {
        // Not waited for: whoever fills the connections must not fill anything else.
        error_code ignored;
        socket.non_blocking(true, ignored);
        socket.write_some(asio::buffer(std::string_view(
                              "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n"
                              "Connection: close\r\n\r\n")),
                          ignored);
        return;
    }
    asio::co_spawn(
        loop,
        [](std::shared_ptr<State> self, tcp::socket socket) -> asio::awaitable<void> {
            co_await self->serve(std::move(socket));
        }(shared_from_this(), std::move(socket)),
        [](const std::exception_ptr& failed) {
            if (failed) std::rethrow_exception(failed);
        });
}

asio::awaitable<void> PageServer::State::serve(tcp::socket socket) {
    const Counted counted(connections);
    error_code ignored;
    socket.set_option(asio::socket_base::send_buffer_size(kSendBuffer), ignored);
    beast::tcp_stream stream(std::move(socket));
    stream.expires_after(kRequestWithin);
    beast::flat_buffer buffer(kRequestLimit);
    http::request_parser<http::empty_body> parser;
    parser.header_limit(kRequestLimit);
    const auto [error, size] = co_await http::async_read_header(stream, buffer, parser, kTuple);
    if (error) {
        const auto refusal = answer_to_error(door, error);
        if (!refusal) co_return;
        co_await write_all(stream, *refusal, refusal->body);
    } else {
        const PageAnswer given = door.answer(to_request(parser.get()));
        co_await answer(stream, given);
    }
    co_await close(stream);
}

asio::awaitable<void> PageServer::State::answer(beast::tcp_stream& stream,
                                                const PageAnswer& given) {
    if (!given.content) {
        co_await write_all(stream, given, given.body);
        co_return;
    }
    if (given.content == PageContent::events) {
        co_await follow(stream, given);
        co_return;
    }
    if (const PageBoard::Text text = board.text(*given.content, day_now())) {
        co_await write_all(stream, given, *text);
        co_return;
    }
    const PageAnswer none = door.refusal(503, "nothing is known of this job yet");
    co_await write_all(stream, none, none.body);
}

// Each round writes what is new, or waits for it; a subscriber that has gone, or has sent more than
// its request, ends it.
asio::awaitable<void> PageServer::State::follow(beast::tcp_stream& stream,
                                                const PageAnswer& given) {
    using namespace asio::experimental::awaitable_operators;
    if (subscribers >= kPageSubscribers) {
        const PageAnswer full =
            door.refusal(503, "16 readers follow this job already; close a page");
        co_await write_all(stream, full, full.body);
        co_return;
    }
    const Counted counted(subscribers);
    stream.expires_after(kEventWithin);
    if (!co_await write_head(stream, to_response(given))) co_return;
    PageBoard::Text text = board.text(PageContent::events, day_now());
    if (!co_await write(stream, asio::buffer(*text))) co_return;
    asio::steady_timer news(loop);
    PageBoard::Seen seen;
    text = board.beat(day_now());
    for (;;) {
        stream.expires_after(kEventWithin);
        if (!co_await write(stream, asio::buffer(*text))) co_return;
        text = board.next_event(seen, day_now());
        if (text) continue;
        stream.expires_never();
        news.expires_after(kBeat);
        waiting.insert(&news);
        const auto first = co_await (news.async_wait(kTuple) ||
                                     stream.socket().async_wait(tcp::socket::wait_read, kTuple));
        waiting.erase(&news);
        if (first.index() == 1) co_return;
        text = board.next_event(seen, day_now());
        if (!text) text = board.beat(day_now());
    }
}

PageServer::PageServer(asio::io_context& loop, const PageDoor& door, PageBoard& board)
    : state_(std::make_shared<State>(loop, door, board)) {}

PageServer::~PageServer() {
    if (state_->accepting) state_->accepting->close();
}

void PageServer::start(tcp::acceptor acceptor) {
    state_->accepting = std::make_unique<AcceptLoop>(
        std::move(acceptor),
        [state = state_.get()](tcp::socket socket, const tcp::endpoint&) {
            state->take(std::move(socket));
        },
        [](const std::string&) {});
    state_->accepting->start();
}

void PageServer::wake() {
    for (asio::steady_timer* timer : state_->waiting) timer->cancel();
}

Result<tcp::acceptor> listen_for_page(asio::io_context& loop, const std::string& address,
                                      int port) {
    error_code error;
    const auto ip = asio::ip::make_address(address, error);
    if (error) return usage_error(address + ": not an IP address");
    const tcp::endpoint endpoint(ip, static_cast<unsigned short>(port));
    tcp::acceptor acceptor(loop);
    acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(kPageConnections, error);
    if (error)
        return Error(ErrorCode::unavailable, "cannot listen on " + address + " port " +
                                                 std::to_string(port) + ": " + error.message());
    return acceptor;
}

}  // namespace ddprun::launcher

// The page's server over real sockets: limits, deadlines that a client cannot stretch, and readers
// who do not read.
#include "operator/page/page_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <cstdlib>
#include <future>
#include <thread>

#include "tests/operator/page/page_examples.h"

namespace ddprun::launcher {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kToken = "a-token-for-the-tests";

// A server on a loop of its own thread.
class Served : public testing::Test {
  protected:
    void SetUp() override {
        auto acceptor = listen_for_page(loop_, "127.0.0.1", 0);
        ASSERT_TRUE(acceptor) << acceptor.error();
        at_ = acceptor->local_endpoint();
        board_.tell_ledger(running_job(), history_until(kMoment));
        board_.tell_status(status_of_nodes(8), std::nullopt);
        server_.start(std::move(*acceptor));
        thread_ = std::thread([this] { loop_.run(); });
    }
    void TearDown() override {
        loop_.stop();
        thread_.join();
    }
    // Runs on the loop, and waits for it.
    void on_loop(const std::function<void()>& what) {
        std::promise<void> done;
        asio::post(loop_, [&] {
            what();
            done.set_value();
        });
        done.get_future().wait();
    }
    tcp::socket connect() {
        tcp::socket socket(mine_);
        socket.connect(at_);
        return socket;
    }
    // The whole answer to these bytes.
    std::string exchange(const std::string& bytes) {
        tcp::socket socket = connect();
        boost::system::error_code error;
        asio::write(socket, asio::buffer(bytes), error);
        std::string answer;
        asio::read(socket, asio::dynamic_buffer(answer), error);
        return answer;
    }
    // The first line of it: the rest may never end.
    std::string first_line(const std::string& bytes) {
        tcp::socket socket = connect();
        boost::system::error_code error;
        asio::write(socket, asio::buffer(bytes), error);
        std::string answer;
        asio::read_until(socket, asio::dynamic_buffer(answer), "\r\n", error);
        return answer.substr(0, answer.find('\r'));
    }
    static std::string get(const std::string& path, const std::string& more = {}) {
        return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + kToken +
               "\r\n" + more + "\r\n";
    }
    // Follows the events, and has read all that there was.
    tcp::socket subscriber() {
        tcp::socket socket = connect();
        asio::write(socket, asio::buffer(get("/events")));
        std::string begin;
        for (const char* end : {"event: history", "\n\n"})
            asio::read_until(socket, asio::dynamic_buffer(begin), end);
        EXPECT_THAT(begin, StartsWith("HTTP/1.1 200 "));
        return socket;
    }

    asio::io_context loop_{1}, mine_;
    PageDoor door_{kToken, "a start", {"127.0.0.1", "localhost"}, 1, page_policy()};
    PageBoard board_{"1.2.3"};
    PageServer server_{loop_, door_, board_};
    tcp::endpoint at_;
    std::thread thread_;
};

TEST_F(Served, AnswersEachRequestAndCloses) {
    EXPECT_THAT(exchange(get("/")), HasSubstr("\r\nContent-Type: text/html; charset=utf-8\r\n"));
    EXPECT_THAT(exchange(get("/metrics")), HasSubstr("\nddprun_up{run=\"lab.8812.0\"} 1\n"));
    EXPECT_THAT(exchange(get("/status.json")), HasSubstr("\"world_size\": 32"));
    EXPECT_THAT(exchange("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
                StartsWith("HTTP/1.1 401 Unauthorized\r\n"));
}

TEST_F(Served, RefusesWhatIsNoRequest) {
    EXPECT_THAT(exchange("\x16\x03\x01\x02\x00 hello\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
    EXPECT_THAT(exchange("GET\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
    EXPECT_THAT(exchange("GET / HTTP/1.1\r\nHost localhost\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
    EXPECT_THAT(exchange(get("/", "Content-Length: 5\r\n") + "abcde"), StartsWith("HTTP/1.1 413 "));
    EXPECT_THAT(exchange(get("/", "X: " + std::string(20000, 'x') + "\r\n")),
                StartsWith("HTTP/1.1 431 "));
    EXPECT_THAT(exchange(get("/" + std::string(20000, 'x'))), StartsWith("HTTP/1.1 431 "));
}

// Whoever opens connections and says nothing keeps out others for a while, and fills nothing else.
TEST_F(Served, HasSoManyConnectionsAtMost) {
    std::vector<tcp::socket> all;
    for (int i = 0; i < kPageConnections; ++i) all.push_back(connect());
    EXPECT_THAT(exchange(get("/")), StartsWith("HTTP/1.1 503 "));
    all.clear();
    // They are let go as soon as the server has seen it.
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{20};
    std::string answer;
    while (!answer.starts_with("HTTP/1.1 200 ") && std::chrono::steady_clock::now() < until)
        answer = exchange(get("/"));
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 "));
}

TEST_F(Served, HasSoManySubscribersAtMost) {
    std::vector<tcp::socket> all;
    for (int i = 0; i < kPageSubscribers; ++i) all.push_back(subscriber());
    EXPECT_EQ(first_line(get("/events")), "HTTP/1.1 503 Service Unavailable");
    EXPECT_THAT(exchange(get("/metrics")), StartsWith("HTTP/1.1 200 "));
}

// The one who does not read costs one text and the socket's buffer; the other one gets the newest.
TEST_F(Served, ALazyReaderDelaysNobody) {
    std::vector<tcp::socket> lazy;
    for (int i = 0; i < 4; ++i) lazy.push_back(subscriber());
    tcp::socket reader = subscriber();
    const auto big = std::make_shared<control::StatusReply>(status_of_nodes(4000));
    std::weak_ptr<const std::string> middle;
    for (int step = 1; step <= 200; ++step) {
        on_loop([&] {
            big->set_step(step);
            board_.tell_status(*big, std::nullopt);
            server_.wake();
            if (step != 100) return;
            PageBoard::Seen seen;
            middle = board_.next_event(seen, kMoment);
        });
    }
    std::string text(std::size_t{1} << 16, '\0'), all;
    while (all.find("\"step\":200,") == std::string::npos) {
        boost::system::error_code error;
        const std::size_t size = reader.read_some(asio::buffer(text), error);
        ASSERT_FALSE(error);
        all = all.substr(all.size() > 20 ? all.size() - 20 : 0) + text.substr(0, size);
    }
    on_loop([&] {
        EXPECT_TRUE(middle.expired()) << "an old text is kept for somebody who does not read";
    });
}

// Half a minute: only in a long run.
TEST_F(Served, LetsALazyReaderGo) {
    if (!std::getenv("DDPRUN_LONG")) return;
    std::vector<tcp::socket> lazy;
    for (int i = 0; i < kPageSubscribers; ++i) lazy.push_back(subscriber());
    for (int round = 0; round < 10; ++round)
        on_loop([&] {
            board_.tell_status(status_of_nodes(4000 + round), std::nullopt);
            server_.wake();
        });
    EXPECT_EQ(first_line(get("/events")), "HTTP/1.1 503 Service Unavailable");
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{90};
    std::string first;
    while (first != "HTTP/1.1 200 OK" && std::chrono::steady_clock::now() < until) {
        std::this_thread::sleep_for(std::chrono::milliseconds{100});
        first = first_line(get("/events"));
    }
    EXPECT_EQ(first, "HTTP/1.1 200 OK");
}

}  // namespace
}  // namespace ddprun::launcher

// Serves a page of a job that does not exist: the real door, board and server, with recorded
// states. For the test in a browser (tests/e2e/page.sh).
//
//   page_recorded NODES     prints the address; then takes a line for each state to show:
//                           running, states, lost, ended, hostile, many HOW-OFTEN
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/streambuf.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "operator/page/page_server.h"
#include "tests/operator/page/page_examples.h"

namespace {

using namespace ddprun;
using namespace ddprun::launcher;
namespace asio = boost::asio;

constexpr const char* kToken = "a-token-for-the-tests";
constexpr const char* kMarkup =
    "<script>document.title='owned'</script><img src=x onerror=alert(1)>";

Duration time_of_day() { return std::chrono::system_clock::now().time_since_epoch(); }

class Recorded {
  public:
    Recorded(asio::io_context& loop, const PageDoor& door, int nodes)
        : board_("0.0.0"), server_(loop, door, board_), nodes_(nodes) {
        tell("running", 0);
    }
    PageServer& server() { return server_; }

    void tell(const std::string& what, int number) {
        const Duration now = time_of_day();
        FoundJob job = running_job("lab.8812.0");
        job.begun = now - std::chrono::minutes{60};
        control::StatusReply status =
            what == "states" ? status_in_all_states(nodes_) : status_of_nodes(nodes_);
        status.set_now(now.count());
        status.set_since((now - std::chrono::minutes{5}).count());
        status.set_ends((now + std::chrono::hours{3}).count());
        status.set_step(status.step() + number);
        rendezvous::LedgerHistory history = history_until(now);
        if (what == "hostile") {
            job.name = kMarkup;
            status.set_waiting_for(kMarkup);
            status.set_ended_by(kMarkup);
            for (control::Node& node : *status.mutable_nodes()) {
                node.set_name(kMarkup);
                node.set_state(kMarkup);
                node.set_why(kMarkup);
            }
            history.entries.back().entry.assignment.cause = kMarkup;
        }
        if (what == "ended") history = ended_history(now);
        if (what != "many") board_.tell_ledger(job, history);
        if (what == "lost")
            board_.tell_link(PageView::Link::lost, "no node of the job answers", now);
        else if (what == "ended")
            board_.tell_link(PageView::Link::ended, "", now);
        else
            board_.tell_status(status, 3.25);
        server_.wake();
    }

  private:
    PageBoard board_;
    PageServer server_;
    int nodes_;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    asio::io_context loop(1);
    auto acceptor = listen_for_page(loop, "127.0.0.1", 0);
    if (!acceptor) return 1;
    const int port = acceptor->local_endpoint().port();
    const PageDoor door(kToken, "a start", {"127.0.0.1", "localhost"}, port, page_policy());
    Recorded recorded(loop, door, std::atoi(argv[1]));
    recorded.server().start(std::move(*acceptor));
    std::printf("http://127.0.0.1:%d/?token=%s\n", port, kToken);
    std::fflush(stdout);

    asio::posix::stream_descriptor commands(loop, ::dup(0));
    asio::streambuf buffer;
    const std::function<void()> read = [&] {
        asio::async_read_until(commands, buffer, '\n',
                               [&](const boost::system::error_code& error, std::size_t) {
                                   if (error) std::_Exit(0);
                                   std::istream line(&buffer);
                                   std::string what;
                                   int number = 0;
                                   line >> what;
                                   if (what == "many") line >> number;
                                   std::string rest;
                                   std::getline(line, rest);
                                   if (what == "many")
                                       for (int i = 0; i < number; ++i) recorded.tell(what, i);
                                   else
                                       recorded.tell(what, 0);
                                   std::printf("shown %s\n", what.c_str());
                                   std::fflush(stdout);
                                   read();
                               });
    };
    read();
    loop.run();
}

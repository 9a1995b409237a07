// Speaks HTTP with the workers' servers.
#include "diagnosis/recorder/recorder_sockets.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "base/system/boot_clock.h"
#include "base/system/careful_open.h"
#include "base/system/unique_fd.h"

namespace ddprun::agent {
namespace {

// Of the first line and the header.
constexpr std::size_t kLongestHeader = 4096;
constexpr std::size_t kPiece = std::size_t{64} << 10;

// The body of "HTTP/1.1 200 OK", after the empty line; empty of anything else.
std::string body_of(std::string reply) {
    constexpr std::string_view kEnd = "\r\n\r\n";
    const std::size_t end = reply.find(kEnd);
    const std::size_t code = reply.find(' ');
    if (!reply.starts_with("HTTP/1.") || end == std::string::npos || end > kLongestHeader ||
        code > end || reply.compare(code, 5, " 200 ") != 0)
        return {};
    reply.erase(0, end + kEnd.size());
    return reply;
}

class Conversation {
  public:
    // A local connect() succeeds at once, or not at all.
    Conversation(int folder, const RecorderQuestion& question, std::size_t longest)
        : longest_(longest + kLongestHeader) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        const std::string path = "/proc/self/fd/" + std::to_string(folder) + "/" + question.socket;
        if (path.size() >= sizeof address.sun_path) return;
        std::ranges::copy(path, address.sun_path);
        socket_ = UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
        const std::string request = "POST /handler/" + question.handler +
                                    " HTTP/1.0\r\nHost: worker\r\nContent-Length: 0\r\n"
                                    "Connection: close\r\n\r\n";
        if (!socket_ ||
            ::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) !=
                0 ||
            ::send(socket_.get(), request.data(), request.size(), MSG_NOSIGNAL) !=
                static_cast<ssize_t>(request.size()))
            socket_ = UniqueFd();
    }

    int fd() const { return socket_.get(); }  // -1: it is over
    // Something has come.
    void read() {
        const std::size_t had = reply_.size();
        reply_.resize(had + kPiece);
        const ssize_t got = ::recv(socket_.get(), reply_.data() + had, kPiece, 0);
        reply_.resize(had + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
        is_whole_ = got == 0;
        if (got <= 0 || reply_.size() > longest_) socket_ = UniqueFd();
    }
    std::string take() { return is_whole_ ? body_of(std::move(reply_)) : std::string(); }

  private:
    std::size_t longest_;
    UniqueFd socket_;
    std::string reply_;
    bool is_whole_ = false;
};

}  // namespace

std::vector<std::string> ask_recorders(const std::string& folder,
                                       const std::vector<RecorderQuestion>& questions,
                                       Duration patience, std::size_t longest) {
    const Time until = boot_now() + patience;
    std::vector<Conversation> all;
    if (const Result<UniqueFd> opened = open_folder(folder))
        for (const RecorderQuestion& question : questions)
            all.emplace_back(opened->get(), question, longest);
    while (true) {
        std::vector<pollfd> waits;
        std::vector<Conversation*> whose;
        for (Conversation& each : all) {
            if (each.fd() < 0) continue;
            waits.push_back({each.fd(), POLLIN, 0});
            whose.push_back(&each);
        }
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - boot_now()).count();
        if (waits.empty() || left <= 0) break;
        if (::poll(waits.data(), waits.size(), static_cast<int>(left)) <= 0) continue;
        for (std::size_t i = 0; i < waits.size(); ++i)
            if (waits[i].revents != 0) whose[i]->read();
    }
    std::vector<std::string> answers(questions.size());
    for (std::size_t i = 0; i < all.size(); ++i) answers[i] = all[i].take();
    return answers;
}

}  // namespace ddprun::agent

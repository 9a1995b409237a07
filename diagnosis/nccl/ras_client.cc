// A conversation is sent in one piece, since RAS reads line by line; what comes back is taken
// apart.
#include "diagnosis/nccl/ras_client.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "base/system/boot_clock.h"
#include "base/system/unique_fd.h"
#include "diagnosis/nccl/ras_address.h"
#include "diagnosis/nccl/ras_reader.h"

namespace ddprun::agent {
namespace {

// For the first line: a RAS thread answers within milliseconds.
constexpr auto kGreeted = std::chrono::seconds{1};
constexpr std::size_t kPiece = std::size_t{64} << 10;
// The lines before the answer.
constexpr std::size_t kLongestLine = 1024;

bool wait_for(int fd, short events, Time until) {
    pollfd wait{fd, events, 0};
    while (true) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - boot_now()).count();
        if (left <= 0) return false;
        const int ready = ::poll(&wait, 1, static_cast<int>(left));
        if (ready > 0) return true;
        if (ready < 0 && errno != EINTR) return false;
    }
}

class Conversation {
  public:
    Conversation(const RasAddress& address, Time until) : address_(address), until_(until) {}

    Result<std::string> ask(const std::string& question, int lines) {
        if (const Result<> greeted = greet(question); !greeted) return greeted.error();
        while (read(until_))
            if (text_.size() > kLongestRasAnswer + kLongestLine)
                return error(ErrorCode::malformed, "answers more than 16 MiB");
        if (!ended_) return error(ErrorCode::timed_out, "does not finish its answer");
        for (; lines > 0; --lines) {
            const std::size_t end = text_.find('\n');
            if (end == std::string::npos || end > kLongestLine)
                return error(ErrorCode::malformed, "does not answer as NCCL does");
            text_.erase(0, end + 1);
        }
        return std::move(text_);
    }

  private:
    Error error(ErrorCode code, const std::string& what) const {
        return {code, "NCCL's RAS at " + address_.text + " " + what};
    }

    Result<> connect() {
        socket_ =
            UniqueFd(::socket(address_.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
        if (!socket_) return error(ErrorCode::unavailable, std::strerror(errno));
        if (::connect(socket_.get(), address_.data(), address_.size()) == 0) return {};
        if (errno != EINPROGRESS)
            return error(ErrorCode::unavailable,
                         std::string("is not there: ") + std::strerror(errno));
        if (!wait_for(socket_.get(), POLLOUT, until_))
            return error(ErrorCode::timed_out, "does not take a connection");
        int failed = 0;
        socklen_t size = sizeof failed;
        ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &failed, &size);
        if (failed == 0) return {};
        return error(ErrorCode::unavailable, std::string("is not there: ") + std::strerror(failed));
    }

    // Until a process has answered the first line.
    Result<> greet(const std::string& question) {
        while (true) {
            if (const Result<> connected = connect(); !connected) return connected.error();
            text_.clear();
            ended_ = false;
            const Time by = std::min<Time>(until_, boot_now() + kGreeted);
            // So few bytes always fit.
            const bool sent = ::send(socket_.get(), question.data(), question.size(),
                                     MSG_NOSIGNAL) == static_cast<ssize_t>(question.size());
            while (sent && text_.find('\n') == std::string::npos && text_.size() <= kLongestLine &&
                   read(by)) {
            }
            if (text_.starts_with("SERVER PROTOCOL ")) return {};
            if (!text_.empty()) return error(ErrorCode::malformed, "does not answer as NCCL does");
            if (boot_now() >= until_) return error(ErrorCode::timed_out, "does not answer");
            if (ended_ && ++closed_ == kClosed)
                return error(ErrorCode::closed, "closes the connection");
        }
    }

    // False: nothing more comes until then, or at all.
    bool read(Time until) {
        if (ended_ || !wait_for(socket_.get(), POLLIN, until)) return false;
        const std::size_t had = text_.size();
        text_.resize(had + kPiece);
        const ssize_t got = ::recv(socket_.get(), text_.data() + had, kPiece, 0);
        text_.resize(had + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
        ended_ = got <= 0;
        return !ended_;
    }

    static constexpr int kClosed = 3;  // a process may end just then
    RasAddress address_;
    Time until_;
    UniqueFd socket_;
    std::string text_;
    bool ended_ = false;
    int closed_ = 0;
};

}  // namespace

Result<std::string> ask_ras(const std::string& address, Duration patience, RasForm form) {
    const std::optional<RasAddress> at = RasAddress::parse(address);
    if (!at)
        return Error(ErrorCode::malformed, "NCCL_RAS_ADDR=" + address +
                                               " is no address and port, such as 127.0.0.1:28028");
    // RAS needs a moment more than its timeout to put the answer together.
    const auto wait = std::chrono::duration_cast<std::chrono::seconds>(patience / 2).count();
    const std::string format = form == RasForm::any ? "SET FORMAT json\n" : "";
    const std::string question = "CLIENT PROTOCOL 2\n" + format + "TIMEOUT " +
                                 std::to_string(std::max<long long>(1, wait)) +
                                 "\nVERBOSE STATUS\n";
    return Conversation(*at, boot_now() + patience).ask(question, format.empty() ? 2 : 3);
}

}  // namespace ddprun::agent

// Connects the workers' sockets, the answers and the barriers over all nodes.
#include "agent/pmi/pmi_server.h"

#include <csignal>
#include <utility>

namespace ddprun::agent::pmi {

Server::Server(boost::asio::io_context& loop, const rendezvous::NodePlace& place,
               std::shared_ptr<TurnBudget> turns, End end, Say say)
    : loop_(loop),
      turns_(std::move(turns)),
      end_(std::move(end)),
      desk_(place),
      sockets_(static_cast<std::size_t>(place.slots)),
      ends_(sockets_.size()),
      rounds_(
          loop, place,
          [this](const std::vector<std::string>& brought) {
              Result<Desk::Outcome> over = desk_.round_over(brought);
              over ? carry_out(std::move(*over)) : fail_all(over.error().sentence());
          },
          std::move(say)) {}

std::unique_ptr<Pmi> Server::make(boost::asio::io_context& loop, const rendezvous::NodePlace& place,
                                  std::shared_ptr<TurnBudget> turns, Pmi::End end, Say say) {
    return std::make_unique<Server>(
        loop, place, std::move(turns),
        [end = std::move(end)](const Desk::Fault& fault) { end(fault.index, fault.why); },
        std::move(say));
}

UniqueFd Server::open(int index) {
    auto& socket = sockets_.at(static_cast<std::size_t>(index));
    socket = std::make_unique<Socket>(
        loop_, turns_, [this, index](std::string_view line) { carry_out(desk_.line(index, line)); },
        [this, index](const std::string& why) {
            end({index, why});
        });
    return socket->open();
}

Pmi::Exit Server::exited(int index, const ExitStatus& status) {
    const auto at = static_cast<std::size_t>(index);
    if (sockets_.at(at)) sockets_[at]->finish();
    if (ends_[at]) return {*ends_[at], ""};
    Desk::Exit exit = desk_.exited(index, status);
    return {exit.status, std::move(exit.warning)};
}

void Server::end(const Desk::Fault& fault) {
    ends_.at(static_cast<std::size_t>(fault.index)) =
        fault.exit_code != 0 ? ExitStatus{.code = fault.exit_code} : ExitStatus{.signal = SIGKILL};
    end_(fault);
}

void Server::carry_out(Desk::Outcome outcome) {
    for (const Desk::Answer& answer : outcome.answers)
        if (const auto& socket = sockets_.at(static_cast<std::size_t>(answer.index)))
            socket->send(answer.text);
    if (outcome.round) rounds_.begin(std::move(*outcome.round));
    if (!outcome.fault) return;
    sockets_.at(static_cast<std::size_t>(outcome.fault->index))->stop();
    end(*outcome.fault);
}

// What the other nodes have brought is wrong, so no worker of this one can go on.
void Server::fail_all(const std::string& why) {
    for (std::size_t i = 0; i < sockets_.size(); ++i) end({static_cast<int>(i), why});
}

}  // namespace ddprun::agent::pmi

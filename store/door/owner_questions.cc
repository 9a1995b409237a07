// The queue at each member, and what its answers mean.
#include "store/door/owner_questions.h"

#include <algorithm>
#include <set>
#include <utility>

namespace ddprun::store {

void OwnerQuestions::arrived(Time now, Connection connection, std::vector<Member> members) {
    const Member first = members.front();
    if (members_[first].waiting >= kMostWaiting) {
        effects_.push_back(Close{connection, Why::crowd, first});
        return;
    }
    waiting_.emplace(connection, Waiting{now + patience_, std::move(members)});
    ++members_[first].waiting;
    members_[first].queue.push_back(connection);
    ask(first);
}

// One question at a time: what arrives meanwhile goes into the next one.
void OwnerQuestions::ask(Member member) {
    Questions& of = members_[member];
    if (of.open) return;
    Ask question{member, newest_question_ + 1, {}};
    for (; !of.queue.empty() && question.connections.size() < kBatch; of.queue.pop_front())
        if (waiting_.contains(of.queue.front())) question.connections.push_back(of.queue.front());
    if (question.connections.empty()) return;
    ++newest_question_;
    of.open = question;
    effects_.push_back(std::move(question));
}

void OwnerQuestions::answered(Member member, std::int64_t number,
                              const std::vector<SocketOwner>& said) {
    if (member >= members_.size()) return;
    Questions& of = members_[member];
    if (!of.open || of.open->number != number) return;
    const Ask question = *std::exchange(of.open, std::nullopt);
    const bool is_whole = said.size() == question.connections.size();
    for (std::size_t i = 0; i < question.connections.size(); ++i)
        if (const auto place = waiting_.find(question.connections[i]); place != waiting_.end())
            judge(place, is_whole ? said[i] : SocketOwner{Whose::failed, 0});
    ask(member);
}

void OwnerQuestions::judge(Place place, const SocketOwner& said) {
    const Connection connection = place->first;
    Waiting& waiting = place->second;
    const Member member = waiting.member();
    if (said.whose == Whose::ours) return end(place, Admit{connection});
    if (said.whose == Whose::other)
        return end(place, Close{connection, Why::other_user, member, said.user});
    if (said.whose == Whose::gone) return end(place, Close{connection, Why::gone, member});
    if (said.whose == Whose::failed) return end(place, Close{connection, Why::failed, member});
    if (waiting.asked + 1 == waiting.members.size()) return end(place, Admit{connection, member});
    --members_[member].waiting;
    ++waiting.asked;
    const Member next = waiting.member();
    ++members_[next].waiting;
    members_[next].queue.push_back(connection);
    ask(next);
}

void OwnerQuestions::end(Place place, Effect how) {
    --members_[place->second.member()].waiting;
    waiting_.erase(place);
    effects_.push_back(std::move(how));
}

void OwnerQuestions::tick(Time now) {
    std::set<Member> late;
    while (!waiting_.empty() && waiting_.begin()->second.until <= now) {
        const auto place = waiting_.begin();
        const Member member = place->second.member();
        end(place, Close{place->first, Why::no_answer, member});
        late.insert(member);
    }
    for (const Member member : late) forget_closed(member);
}

// A member that answers nothing must not keep the numbers of all who ever came, nor its question
// those that come now.
void OwnerQuestions::forget_closed(Member member) {
    Questions& of = members_[member];
    const auto is_closed = [this](Connection one) { return !waiting_.contains(one); };
    while (!of.queue.empty() && is_closed(of.queue.front())) of.queue.pop_front();
    if (of.open && std::ranges::all_of(of.open->connections, is_closed)) of.open.reset();
    ask(member);
}

Time OwnerQuestions::next_deadline() const {
    return waiting_.empty() ? kNever : waiting_.begin()->second.until;
}

}  // namespace ddprun::store

// Links and local sessions by their numbers, and the links that are on their way out.
#include "rendezvous/service/sessions.h"

#include <boost/asio/post.hpp>
#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rendezvous/wire/wire.h"

namespace ddprun::rendezvous {

namespace asio = boost::asio;

struct Sessions::State : std::enable_shared_from_this<Sessions::State> {
    struct Local {
        Deliver deliver;
        bool closed = false;  // by its owner: messages that are still posted are dropped
    };

    State(asio::io_context& loop, Log log, Handlers handlers)
        : loop(loop), log(std::move(log)), handlers(std::move(handlers)) {}

    void admit(std::shared_ptr<Link> link, ToLeader first);
    void frame_came(Session session, std::string_view body);
    void link_ended(Session session, const Error& why);
    void leaving_ended();
    void send(Session session, const ToNode& message);
    void close(Session session);
    void finish();
    void give_up_leaving();
    void cut();
    void emit(const Event& event);
    // A local session has a number like any other; only its messages take another way.
    Session new_session() { return Session{++newest}; }

    asio::io_context& loop;
    const Log log;
    const Handlers handlers;
    bool finished = false;  // the job has ended
    bool is_cut = false;    // no handler is called any more
    std::int64_t newest = 0;
    std::unordered_map<Session, std::shared_ptr<Link>> links;
    std::map<Session, std::shared_ptr<Local>> locals;
    std::set<std::shared_ptr<Link>> leaving;  // closed by the machine, still sending
    std::vector<std::shared_ptr<Link>> told;  // nodes that are ready to leave when we do
};

void Sessions::State::emit(const Event& event) {
    const auto self = shared_from_this();  // the handler may let go of this object
    if (!is_cut) handlers.on_event(event);
}

void Sessions::State::admit(std::shared_ptr<Link> link, ToLeader first) {
    const Session session = new_session();
    const auto weak = weak_from_this();
    Link::Handlers of_link;
    of_link.on_frame = [weak, session](std::string_view body) {
        if (const auto self = weak.lock()) self->frame_came(session, body);
    };
    of_link.on_end = [weak, session](const Error& why) {
        if (const auto self = weak.lock()) self->link_ended(session, why);
    };
    link->promote(kNodeFrameLimit, std::move(of_link));
    link->read_ahead();
    // Before the machine hears of the session, because it may answer at once.
    links.emplace(session, std::move(link));
    emit(Came{session, std::move(first)});
}

// After a frame that cannot be decoded the machine sees a lost connection.
void Sessions::State::frame_came(Session session, std::string_view body) {
    auto message = decode_to_leader(body);
    if (message) return emit(Came{session, std::move(*message)});
    const auto link = links.find(session);
    if (link == links.end()) return;
    const Error why(message.error().code(),
                    "from " + link->second->peer() + ": " + message.error().sentence());
    link->second->drop();
    link_ended(session, why);
}

void Sessions::State::link_ended(Session session, const Error& why) {
    if (links.erase(session) == 0) return leaving_ended();
    // The machine judges what an ended connection means. Something that is no agent link is worth a
    // log line, whoever sent it.
    const bool stranger = why.code() != ErrorCode::closed;
    log({stranger ? Note::Level::info : Note::Level::debug,
         "connection closed: " + why.sentence()});
    emit(ConnectionLost{session});
}

// The machine has closed this session: its last messages are sent, or given up.
void Sessions::State::leaving_ended() {
    std::erase_if(leaving, [this](const auto& one) {
        if (one->is_over() && finished) told.push_back(one);
        return one->is_over();
    });
    if (!is_cut) handlers.on_left();
}

void Sessions::State::send(Session session, const ToNode& message) {
    if (const auto link = links.find(session); link != links.end())
        return link->second->send(encode(message));
    const auto local = locals.find(session);
    if (local == locals.end()) return;  // the session is lost; the machine will hear of it
    // Posted, because the own node may answer at once, and the machine must not be entered twice.
    asio::post(loop, [weak = weak_from_this(), to = local->second, message] {
        if (!weak.expired() && !to->closed) to->deliver(message);
    });
}

void Sessions::State::close(Session session) {
    locals.erase(session);
    const auto link = links.find(session);
    if (link == links.end()) return;
    // Kept until what is queued has been sent.
    leaving.insert(link->second);
    link->second->finish();
    links.erase(link);
}

void Sessions::State::finish() {
    finished = true;
    for (const auto& [session, link] : std::exchange(links, {})) {
        leaving.insert(link);
        link->finish_with_us();
    }
}

void Sessions::State::give_up_leaving() {
    for (const auto& link : std::exchange(leaving, {})) link->drop();
}

void Sessions::State::cut() {
    is_cut = true;
    for (const auto& [session, link] : links) link->drop();
    for (const auto& link : leaving) link->drop();
    for (const auto& link : told) link->drop();
    links.clear();
    leaving.clear();
    told.clear();
    locals.clear();
}

Sessions::Sessions(asio::io_context& loop, Log log, Handlers handlers)
    : state_(std::make_shared<State>(loop, std::move(log), std::move(handlers))) {}

Sessions::~Sessions() { cut(); }

void Sessions::admit(std::shared_ptr<Link> link, ToLeader first) {
    state_->admit(std::move(link), std::move(first));
}

void Sessions::send(Session session, const ToNode& message) { state_->send(session, message); }

void Sessions::close(Session session) { state_->close(session); }

void Sessions::finish() { state_->finish(); }

bool Sessions::all_left() const { return state_->leaving.empty(); }

void Sessions::give_up_leaving() { state_->give_up_leaving(); }

void Sessions::cut() { state_->cut(); }

std::size_t Sessions::connections() const { return state_->links.size(); }

Session Sessions::open_local(Deliver deliver) {
    const Session session = state_->new_session();
    state_->locals.emplace(session,
                           std::make_shared<State::Local>(State::Local{std::move(deliver)}));
    return session;
}

void Sessions::local_send(Session session, ToLeader message) {
    asio::post(state_->loop,
               [weak = std::weak_ptr(state_), event = Came{session, std::move(message)}] {
                   const auto self = weak.lock();
                   if (self && self->locals.contains(event.session)) self->emit(event);
               });
}

void Sessions::close_local(Session session) {
    const auto local = state_->locals.find(session);
    if (local == state_->locals.end()) return;
    local->second->closed = true;
    asio::post(state_->loop, [weak = std::weak_ptr(state_), session] {
        const auto self = weak.lock();
        if (self && self->locals.erase(session) > 0) self->emit(ConnectionLost{session});
    });
}

}  // namespace ddprun::rendezvous

// Connects the ranks, and finds out who is missing when that does not succeed.
#include "trainer/gloo/gloo_meeting.h"

#include <gloo/transport/context.h>
#include <gloo/transport/tcp/address.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>

#include "trainer/group/rank_names.h"

namespace ddprun::trainer {
namespace {

constexpr char kAddresses[] = "gloo/addresses/", kMeeting[] = "gloo/meeting/",
               kFailed[] = "gloo/failed", kAlive[] = "gloo/alive/", kVerdict[] = "gloo/verdict";
constexpr char kConnected[] = "connected", kGivenUp[] = "given up";
// How long a rank that gives up waits, in all, for the others to say that they are alive.
constexpr auto kOthersSay = std::chrono::milliseconds(1000);

using Address = ::gloo::transport::tcp::Address;

std::string host_name() {
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    return name;
}

}  // namespace

// Gloo's own context for a full mesh connects without a common deadline, so this one does it. The
// two members are what Gloo's collectives and ours use of a context.
class GlooMeeting::Mesh : public ::gloo::Context {
  public:
    Mesh(int rank, int size, std::shared_ptr<::gloo::transport::Device> device,
         std::chrono::milliseconds timeout)
        : ::gloo::Context(rank, size) {
        setTimeout(timeout);
        device_ = std::move(device);
        transportContext_ = device_->createContext(rank, size);
        transportContext_->setTimeout(timeout);
    }
    // The addresses at which this rank waits for the others, one after the other in equal widths.
    std::vector<char> listen() {
        std::vector<char> all;
        for (int other = 0; other < size; ++other) {
            if (other == rank) continue;
            const auto address = transportContext_->createPair(other)->address().bytes();
            all.insert(all.end(), address.begin(), address.end());
        }
        return all;
    }
    ::gloo::transport::Pair& pair(int other) { return *transportContext_->getPair(other); }
};

GlooMeeting::GlooMeeting(const Context& context, Store& store, Clock::time_point deadline,
                         std::chrono::milliseconds timeout)
    : context_(context),
      store_(store),
      deadline_(deadline),
      timeout_(timeout),
      places_(static_cast<std::size_t>(context.world_size)) {}

GlooMeeting::~GlooMeeting() { (void)close(); }

std::chrono::milliseconds GlooMeeting::left() const {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - Clock::now());
    return std::max(left, std::chrono::milliseconds(1));
}

Result<void> GlooMeeting::begin() {
    auto own = store_.another("");
    if (!own) return own.error();
    own_ = std::move(*own);
    auto waiting = start_thread("the meeting of the ranks", [this] { wait_for_end(); });
    if (!waiting) return waiting.error();
    waiting_ = std::move(*waiting);
    return {};
}

// The thread. It says that this rank is alive before it ends the waits: the rank that gave up waits
// for that.
void GlooMeeting::wait_for_end() {
    const std::string me = std::to_string(context_.rank.value);
    const auto word = own_->get(kMeeting + me, left());
    if (word && *word == kConnected) return;
    (void)own_->set(kAlive + me, "1");
    end_waits();
}

void GlooMeeting::end_waits() {
    std::lock_guard lock(mutex_);
    over_ = true;
    if (end_waits_) end_waits_();
}

void GlooMeeting::on_end(std::function<void()> end_waits) {
    std::lock_guard lock(mutex_);
    end_waits_ = std::move(end_waits);
    if (over_) end_waits_();
}

// The word wakes the thread. Without an answer of the store it ends at the deadline.
std::unique_ptr<Store> GlooMeeting::close() {
    if (!waiting_.joinable()) return nullptr;
    const std::string me = std::to_string(context_.rank.value);
    // Another rank may give up in this moment, and must not miss this one.
    (void)store_.set(kAlive + me, "1");
    (void)store_.set(kMeeting + me, kConnected);
    waiting_.join();
    return std::move(own_);
}

// A pair that was closed counts as connected for Gloo.
void GlooMeeting::throw_if_over() {
    std::lock_guard lock(mutex_);
    if (over_)
        throw StoreFailure(Error(
            ErrorCode::timed_out,
            "the ranks were not connected within " + std::to_string(timeout_.count()) + " ms"));
}

// Waits until another rank has come. An empty value was written by a rank that gave up.
std::vector<char> GlooMeeting::read_addresses(int other) {
    auto text = store_.get(kAddresses + std::to_string(other), left());
    if (!text) throw StoreFailure(text.error());
    const auto end = text->find('\0');
    const std::size_t ranks = static_cast<std::size_t>(context_.world_size) - 1;
    if (end == std::string::npos || (text->size() - end - 1) % ranks)
        throw StoreFailure(Error(ErrorCode::closed, "another rank has given up"));
    const std::size_t width = (text->size() - end - 1) / ranks;
    // Of the addresses of `other`, the one at which it waits for this rank. It has none for itself.
    const auto index =
        static_cast<std::size_t>(context_.rank.value - (context_.rank.value > other));
    const auto at = text->begin() + static_cast<std::ptrdiff_t>(end + 1 + index * width);
    std::vector<char> address(at, at + static_cast<std::ptrdiff_t>(width));
    places_[static_cast<std::size_t>(other)] = text->substr(0, end) + " " + Address(address).str();
    return address;
}

std::shared_ptr<::gloo::Context> GlooMeeting::connect(
    std::shared_ptr<::gloo::transport::Device> device) {
    const int rank = context_.rank.value, size = context_.world_size;
    // The limit of each pair is that of the meeting: the thread ends its wait in any case.
    mesh_ = std::make_shared<Mesh>(rank, size, std::move(device), timeout_);
    const auto addresses = mesh_->listen();
    std::string text = host_name();
    text.push_back('\0');
    text.append(addresses.begin(), addresses.end());
    auto said = store_.set(kAddresses + std::to_string(rank), text);
    if (!said) throw StoreFailure(said.error());
    on_end([mesh = mesh_] {
        for (int other = 0; other < mesh->size; ++other)
            if (other != mesh->rank) mesh->pair(other).close();
    });
    for (int other = 0; other < size; ++other) {
        if (other == rank) continue;
        const auto address = read_addresses(other);
        throw_if_over();
        mesh_->pair(other).connect(address);
        throw_if_over();
    }
    return mesh_;
}

// The ranks that do not say that they are alive. It takes a second if there are any.
std::vector<int> GlooMeeting::silent_ranks() {
    const auto until = Clock::now() + kOthersSay;
    std::vector<int> silent;
    for (int other = 0; other < context_.world_size; ++other) {
        if (other == context_.rank.value) continue;
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
        auto word = store_.get(kAlive + std::to_string(other),
                               std::max(left, std::chrono::milliseconds(1)));
        if (word) continue;
        // The store is gone, and cannot tell who is missing.
        if (word.error().code() != ErrorCode::timed_out) return {};
        silent.push_back(other);
    }
    return silent;
}

// A sentence of Gloo's names an address. Whose it is stands before it.
std::string GlooMeeting::with_rank(const std::string& sentence) const {
    for (std::size_t rank = 0; rank < places_.size(); ++rank) {
        const std::string& place = places_[rank];
        const auto space = place.find(' ');
        if (space == std::string::npos) continue;
        const std::string address = place.substr(space + 1);
        const auto at = sentence.find(address);
        // The port must end here: "[10.0.0.7]:471" is also the beginning of "[10.0.0.7]:4711".
        if (at == std::string::npos || std::isdigit(sentence.c_str()[at + address.size()]))
            continue;
        return "rank " + std::to_string(rank) + " on " + place.substr(0, space) + ": " + sentence;
    }
    return sentence;
}

// The first rank that gives up decides what all ranks report, so that they name the same ranks, and
// N ranks do not write N × N words.
Error GlooMeeting::failure(const Error& reason, Cause cause) {
    const auto failed = store_.add(kFailed, 1);
    // Ends the others' waiting for addresses that will not come.
    if (!mesh_) (void)store_.set(kAddresses + std::to_string(context_.rank.value), "");
    const Error verdict = !failed        ? reason
                          : *failed == 1 ? tell_others(reason, cause)
                                         : hear_verdict(reason);
    return Error(verdict.code(),
                 name_rank_of(context_.rank.value, context_.world_size, context_.job_ranks) +
                     " cannot connect: " + verdict.sentence());
}

// The verdict is the code as a letter, and the sentence.
Error GlooMeeting::tell_others(const Error& reason, Cause cause) {
    const int rank = context_.rank.value, size = context_.world_size;
    for (int other = 0; other < size; ++other)
        if (other != rank) (void)store_.set(kMeeting + std::to_string(other), kGivenUp);
    const auto silent = cause == Cause::here ? std::vector<int>() : silent_ranks();
    for (int other : silent) (void)store_.set(kAddresses + std::to_string(other), "");
    const Error verdict = silent.empty() ? Error(reason.code(), with_rank(reason.sentence()))
                                         : Error(ErrorCode::timed_out, name_missing(silent));
    const std::string by = silent.empty() ? name_rank(rank, context_.job_ranks) + " gave up: " : "";
    (void)store_.set(kVerdict, static_cast<char>('a' + static_cast<int>(verdict.code())) + by +
                                   verdict.sentence());
    return verdict;
}

Error GlooMeeting::hear_verdict(const Error& reason) {
    auto word = store_.get(kVerdict, 3 * kOthersSay);
    if (!word || word->empty()) return reason;
    return Error(static_cast<ErrorCode>(word->front() - 'a'), word->substr(1));
}

std::string GlooMeeting::name_missing(const std::vector<int>& ranks) const {
    std::string places;
    for (std::size_t i = 0; i < std::min<std::size_t>(ranks.size(), 3); ++i) {
        const std::string& place = places_[static_cast<std::size_t>(ranks[i])];
        if (place.empty()) continue;
        places += places.empty() ? " (" : ", ";
        places += "rank " + std::to_string(ranks[i]) + " on " + place;
    }
    if (!places.empty()) places += ")";
    return name_ranks(ranks, context_.job_ranks) + " did not join the process group within " +
           std::to_string(timeout_.count()) + " ms" + places + "; see " +
           (ranks.size() == 1 ? "its log" : "their logs");
}

}  // namespace ddprun::trainer

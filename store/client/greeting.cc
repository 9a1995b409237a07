// The stages of the greeting; greeting.h explains the bytes.
#include "store/client/greeting.h"

#include <algorithm>

namespace ddprun::store {
namespace {

constexpr std::size_t kCancels = 4;
constexpr std::size_t kNumberSize = 8;
// A larger number is no answer to GETNUMKEYS.
constexpr std::uint64_t kMostKeys = std::uint64_t{1} << 40;

const Request kCancel{Operation::cancel_wait, {}, {}, 0};
const Request kNumKeys{Operation::num_keys, {}, {}, 0};

// VALIDATE has no answer of its own, so it is followed by requests that have one and change
// nothing.
std::string modern_opening() {
    std::string bytes = encode({Operation::validate, {}, {}, 0});
    for (std::size_t i = 0; i < kCancels; ++i) bytes += encode(kCancel);
    return bytes;
}

Error no_store() {
    return Error(ErrorCode::malformed, "what answers there is not a TCPStore of PyTorch or ddprun");
}

// Answers may arrive in pieces: what has come so far must be a beginning of what is expected.
bool begins_alike(std::string_view one, std::string_view other) {
    const std::size_t size = std::min(one.size(), other.size());
    return one.substr(0, size) == other.substr(0, size);
}

}  // namespace

bool Peer::knows(Operation operation) const {
    switch (dialect) {
        case Dialect::torch_2_2:
            return operation != Operation::watch_key;
        case Dialect::torch_2_1:
            return operation >= Operation::set && operation <= Operation::cancel_wait;
        default:
            return operation >= Operation::set && operation <= Operation::delete_key;
    }
}

Greeting::Greeting(Dialect known) : known_(known) { begin_anew(); }

void Greeting::begin_anew() {
    if (known_ == Dialect::torch_1_13) return begin(Stage::torch_1_13);
    begin(known_ == Dialect::torch_2_1 ? Stage::torch_2_1 : Stage::modern);
}

// Each stage belongs to a new connection, but for legacy_cancel: it continues the one of legacy.
void Greeting::begin(Stage stage) {
    stage_ = stage;
    input_.clear();
    switch (stage) {
        case Stage::modern:
            output_ = modern_opening() + encode({Operation::get, {""}, {}, 0});
            break;
        case Stage::strict:
            output_ = modern_opening();
            break;
        case Stage::legacy:
        case Stage::torch_1_13:
            output_ = encode(kNumKeys, Dialect::torch_1_13);
            break;
        case Stage::legacy_cancel:
        case Stage::torch_2_1:
            output_ = encode(kCancel, Dialect::torch_2_1);
            break;
    }
}

Result<Greeting::Verdict> Greeting::received(std::string_view bytes) {
    input_ += bytes;
    // CANCEL_WAIT is always answered with 1, whether or not there is a wait.
    const std::string ones(kCancels, '\1');
    switch (stage_) {
        case Stage::modern:
            return judge(ones + std::string(kNumberSize, '\0'));
        case Stage::strict:
            return judge(ones);
        case Stage::legacy_cancel:
        case Stage::torch_2_1:
            return judge("\1");
        default:
            break;
    }
    // Both remaining stages have asked for the number of keys.
    if (input_.size() < kNumberSize) return Verdict::more;
    const auto* at = reinterpret_cast<const unsigned char*>(input_.data());
    if (input_.size() > kNumberSize || get_little_endian(at, kNumberSize) > kMostKeys)
        return no_store();
    if (stage_ == Stage::legacy) {
        begin(Stage::legacy_cancel);
        return Verdict::more;
    }
    peer_ = {Dialect::torch_1_13, false};
    return Verdict::ready;
}

Result<Greeting::Verdict> Greeting::judge(std::string_view wanted) {
    if (!begins_alike(input_, wanted) || input_.size() > wanted.size()) return no_store();
    if (input_.size() < wanted.size()) return Verdict::more;
    const bool modern = stage_ == Stage::modern || stage_ == Stage::strict;
    peer_ = {modern ? Dialect::torch_2_2 : Dialect::torch_2_1, stage_ == Stage::modern};
    return Verdict::ready;
}

Greeting::Verdict Greeting::ended() {
    // It answered the CANCEL_WAITs and closed at the GET: PyTorch's older back end.
    if (stage_ == Stage::modern && input_.size() == kCancels) {
        begin(Stage::strict);
        // It answered nothing: a server of 2.1 or older, or one that is just going away.
    } else if (stage_ == Stage::modern && input_.empty() && known_ == Dialect::unknown) {
        begin(Stage::legacy);
        // It gave the number of keys and does not know CANCEL_WAIT.
    } else if (stage_ == Stage::legacy_cancel && input_.empty()) {
        begin(Stage::torch_1_13);
    } else {
        // An end in the middle of an answer says nothing about the dialect.
        ++began_anew_;
        begin_anew();
    }
    return Verdict::reconnect;
}

}  // namespace ddprun::store

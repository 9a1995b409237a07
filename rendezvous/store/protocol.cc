#include "rendezvous/store/protocol.h"

#include <algorithm>
#include <cstdio>

namespace ddprun::store {
namespace {

// The fields after the code: m magic, n nonce (both u32), i i64, k key, v value, K counted keys, P
// counted pairs of key and value. This table is all that the decoder and the encoder know of the
// operations.
struct Shape {
    const char* name;
    std::string_view fields;
};

constexpr Shape kShapes[] = {
    {"VALIDATE", "m"},   {"SET", "kv"},     {"COMPARE_SET", "kvv"}, {"GET", "k"},
    {"ADD", "ki"},       {"CHECK", "K"},    {"WAIT", "K"},          {"GETNUMKEYS", ""},
    {"DELETE_KEY", "k"}, {"APPEND", "kv"},  {"MULTI_GET", "K"},     {"MULTI_SET", "P"},
    {"CANCEL_WAIT", ""}, {"PING", "n"},     {"QUEUE_PUSH", "kv"},   {"QUEUE_POP", "k"},
    {"QUEUE_LEN", "k"},  {"LIST_KEYS", ""}, {"BARRIER", "ki"},      {"WATCH_KEY", "k"},
};

using Op = Operation;
constexpr Op kCodes113[] = {Op::set,  Op::compare_set, Op::get,       Op::add,       Op::check,
                            Op::wait, Op::num_keys,    Op::watch_key, Op::delete_key};
constexpr Op kCodes21[] = {Op::set,    Op::compare_set, Op::get,       Op::add,
                           Op::check,  Op::wait,        Op::num_keys,  Op::delete_key,
                           Op::append, Op::multi_get,   Op::multi_set, Op::cancel_wait};
constexpr std::uint8_t kCodeDeleteOrAppend = 8;
constexpr std::uint8_t kFirstCodeOnlyIn21 = 9;
constexpr std::uint8_t kLastCodeOf22 = static_cast<std::uint8_t>(Op::barrier);

// torch 2.1 cuts a request into packets at 1440 bytes; only below that does the end of a packet
// tell anything.
constexpr std::size_t kSurelyOnePacket = 1400;
// Memory for a value is taken in full only after this much of it has really arrived.
constexpr std::size_t kTrustedLength = 1 << 20;
// Below this a copy is cheaper than a buffer of its own in the gathered write.
constexpr std::size_t kCopyUpTo = 4096;

const Shape& shape_of(Operation operation) { return kShapes[static_cast<std::size_t>(operation)]; }

Error malformed(std::string sentence) { return Error(ErrorCode::malformed, std::move(sentence)); }

Error over_limit(Operation operation, const char* what, std::uint64_t is, std::uint64_t limit) {
    return malformed(std::string(to_string(operation)) + " with " + what + " " +
                     std::to_string(is) + ", over the limit of " + std::to_string(limit));
}

Error not_a_store_client(std::uint64_t got) {
    char hex[24];
    std::snprintf(hex, sizeof hex, "0x%08llX", static_cast<unsigned long long>(got));
    return malformed(std::string("the first bytes are no TCPStore greeting: magic ") + hex +
                     ", expected 0x3C85F7CE; is this a client of another service?");
}

std::uint8_t code_of(Operation operation, Dialect dialect) {
    if (dialect == Dialect::torch_2_2) return static_cast<std::uint8_t>(operation);
    const Op* begin = dialect == Dialect::torch_1_13 ? std::begin(kCodes113) : std::begin(kCodes21);
    const Op* end = dialect == Dialect::torch_1_13 ? std::end(kCodes113) : std::end(kCodes21);
    const Op* found = std::find(begin, end, operation);
    DDPRUN_CHECK(found != end, "the operation does not exist in this dialect");
    return static_cast<std::uint8_t>(found - begin);
}

}  // namespace

const char* to_string(Operation operation) { return shape_of(operation).name; }

Result<> Decoder::feed(std::string_view bytes, bool burst_ends, std::vector<Request>& out) {
    const std::size_t burst_size = bytes.size();
    while (!bytes.empty()) {
        Result<> done;
        if (stage_ == Stage::code) {
            const auto code = static_cast<std::uint8_t>(bytes.front());
            bytes.remove_prefix(1);
            done = begin(code, out);
        } else if (stage_ == Stage::number) {
            done = take_number(bytes, out);
        } else {
            done = take_text(bytes, out);
        }
        if (!done) return done;
    }
    if (burst_ends) judge_burst(burst_size, out);
    return {};
}

Result<> Decoder::begin(std::uint8_t code, std::vector<Request>& out) {
    code_ = code;
    request_ = Request{};
    request_bytes_ = 0;
    if (dialect_ == Dialect::unknown) {
        // A greeting, or the SET of an old dialect: the four bytes that follow decide.
        if (code == 0) {
            expect('m');
            return {};
        }
        dialect_ = legacy_;
    }
    const Result<Operation> operation = operation_of(code);
    if (!operation) return operation.error();
    request_.operation = *operation;
    fields_ = shape_of(*operation).fields;
    next_field(out);
    return {};
}

Result<Operation> Decoder::operation_of(std::uint8_t code) {
    if (dialect_ == Dialect::torch_2_2) {
        if (code == 0) return malformed("a second greeting (VALIDATE) on the same connection");
        if (code <= kLastCodeOf22) return static_cast<Operation>(code);
        return malformed("operation code " + std::to_string(code) +
                         " is unknown, the last one is " + std::to_string(kLastCodeOf22));
    }
    if (code >= std::size(kCodes21)) {
        return malformed("operation code " + std::to_string(code) +
                         " without a greeting; old clients know 0 to 11");
    }
    if (code >= kFirstCodeOnlyIn21) dialect_ = Dialect::torch_2_1;
    if (dialect_ == Dialect::torch_1_13) return kCodes113[code];
    return kCodes21[code];
}

void Decoder::expect(char field) {
    field_ = field;
    number_have_ = 0;
    number_want_ = field == 'm' || field == 'n' ? 4 : 8;
    stage_ = Stage::number;
}

void Decoder::next_field(std::vector<Request>& out) {
    if (texts_left_ > 0) {
        --texts_left_;
        expect(pairs_ && request_.keys.size() > request_.values.size() ? 'v' : 'k');
    } else if (!fields_.empty()) {
        const char field = fields_.front();
        fields_.remove_prefix(1);
        expect(field);
    } else {
        if (code_ == kCodeDeleteOrAppend && dialect_ == Dialect::legacy) {
            dialect_ = Dialect::torch_2_1;  // it went on after the key
        }
        out.push_back(std::move(request_));
        stage_ = Stage::code;
    }
}

Result<> Decoder::take_number(std::string_view& bytes, std::vector<Request>& out) {
    while (number_have_ < number_want_ && !bytes.empty()) {
        number_[number_have_++] = static_cast<unsigned char>(bytes.front());
        bytes.remove_prefix(1);
    }
    if (number_have_ < number_want_) return {};
    return on_number(get_little_endian(number_.data(), number_want_), out);
}

Result<> Decoder::on_number(std::uint64_t number, std::vector<Request>& out) {
    switch (field_) {
        case 'm':
            return on_greeting(static_cast<std::uint32_t>(number), out);
        case 'k':
        case 'v':
            return begin_text(number, out);
        case 'K':
        case 'P':
            if (number > limits_.max_keys) {
                return over_limit(request_.operation, "a number of keys of", number,
                                  limits_.max_keys);
            }
            pairs_ = field_ == 'P';
            texts_left_ = pairs_ ? number * 2 : number;
            break;
        default:
            request_.number = static_cast<std::int64_t>(number);
    }
    next_field(out);
    return {};
}

Result<> Decoder::on_greeting(std::uint32_t magic, std::vector<Request>& out) {
    if (magic == kGreetingMagic) {
        dialect_ = Dialect::torch_2_2;
        request_.operation = Operation::validate;
        fields_ = {};
        next_field(out);
        return {};
    }
    if (magic > limits_.max_key) return not_a_store_client(magic);
    // An old client's SET: what was read is the lower half of the length of its key.
    dialect_ = legacy_;
    request_.operation = Operation::set;
    fields_ = shape_of(Operation::set).fields.substr(1);
    field_ = 'k';
    number_want_ = 8;
    return {};
}

Result<> Decoder::begin_text(std::uint64_t length, std::vector<Request>& out) {
    const bool key = field_ == 'k';
    const std::uint64_t limit = key ? limits_.max_key : limits_.max_value;
    if (length > limit) {
        return over_limit(request_.operation, key ? "a key of bytes" : "a value of bytes", length,
                          limit);
    }
    request_bytes_ += length;
    if (request_bytes_ > limits_.max_request) {
        return over_limit(request_.operation, "keys and values of bytes", request_bytes_,
                          limits_.max_request);
    }
    text_ = &(key ? request_.keys : request_.values).emplace_back();
    text_length_ = length;
    if (length == 0) {
        next_field(out);
        return {};
    }
    text_->reserve(std::min<std::uint64_t>(length, kTrustedLength));
    stage_ = Stage::text;
    return {};
}

Result<> Decoder::take_text(std::string_view& bytes, std::vector<Request>& out) {
    const std::size_t taken = std::min<std::uint64_t>(text_length_ - text_->size(), bytes.size());
    if (text_->size() + taken > text_->capacity()) text_->reserve(text_length_);
    text_->append(bytes.substr(0, taken));
    bytes.remove_prefix(taken);
    if (text_->size() == text_length_) next_field(out);
    return {};
}

// Only an old dialect that is not decided yet has anything to learn from where the sender paused.
void Decoder::judge_burst(std::size_t burst_size, std::vector<Request>& out) {
    if (dialect_ != Dialect::legacy || stage_ != Stage::number || number_have_ != 0) return;
    if (burst_size == 1 && request_.keys.empty()) {
        dialect_ = Dialect::torch_1_13;  // a code in a packet of its own
        if (request_.operation == Op::delete_key) request_.operation = Op::watch_key;
        if (request_.operation == Op::append) {
            request_.operation = Op::delete_key;
            fields_ = shape_of(Op::delete_key).fields.substr(1);
        }
        return;
    }
    const bool key_just_ended = code_ == kCodeDeleteOrAppend && field_ == 'v';
    if (key_just_ended && request_.keys.front().size() < kSurelyOnePacket) {
        dialect_ = Dialect::torch_1_13;  // it waits for an answer where APPEND would go on
        request_.operation = Op::delete_key;
        fields_ = {};
        next_field(out);
    }
}

std::string encode(const Request& request, Dialect dialect) {
    std::string out(1, static_cast<char>(code_of(request.operation, dialect)));
    std::size_t key = 0;
    std::size_t value = 0;
    for (const char field : shape_of(request.operation).fields) {
        switch (field) {
            case 'm':
                put_u32(out, kGreetingMagic);
                break;
            case 'n':
                put_u32(out, static_cast<std::uint32_t>(request.number));
                break;
            case 'i':
                put_u64(out, static_cast<std::uint64_t>(request.number));
                break;
            case 'k':
                put_text(out, request.keys.at(key++));
                break;
            case 'v':
                put_text(out, request.values.at(value++));
                break;
            default:
                put_u64(out, request.keys.size());
                for (; key < request.keys.size(); ++key) {
                    put_text(out, request.keys[key]);
                    if (field == 'P') put_text(out, request.values.at(key));
                }
        }
    }
    return out;
}

Reply status_reply(ConnectionId to, Status status) {
    return {to, std::string(1, static_cast<char>(status)), nullptr};
}

Reply number_reply(ConnectionId to, std::int64_t number) {
    Reply reply{to, {}, nullptr};
    put_u64(reply.bytes, static_cast<std::uint64_t>(number));
    return reply;
}

Reply nonce_reply(ConnectionId to, std::int64_t nonce) {
    Reply reply{to, {}, nullptr};
    put_u32(reply.bytes, static_cast<std::uint32_t>(nonce));
    return reply;
}

Reply value_reply(ConnectionId to, const SharedValue& value) {
    Reply reply{to, {}, nullptr};
    if (!value || value->size() <= kCopyUpTo) {
        put_text(reply.bytes, value ? std::string_view(*value) : std::string_view());
    } else {
        put_u64(reply.bytes, value->size());
        reply.value = value;
    }
    return reply;
}

void put_u32(std::string& out, std::uint32_t number) {
    for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<char>(number >> shift));
}

void put_u64(std::string& out, std::uint64_t number) {
    for (int shift = 0; shift < 64; shift += 8) out.push_back(static_cast<char>(number >> shift));
}

void put_text(std::string& out, std::string_view text) {
    put_u64(out, text.size());
    out.append(text);
}

std::uint64_t get_little_endian(const unsigned char* bytes, std::size_t count) {
    std::uint64_t number = 0;
    for (std::size_t i = count; i-- > 0;) number = number << 8 | bytes[i];
    return number;
}

}  // namespace ddprun::store

// The decoder of requests: a state machine over the fields of each operation (dialects.h).
#include "store/protocol/protocol.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "store/protocol/dialects.h"

namespace ddprun::store {
namespace {

using Op = Operation;
// Code 8 is DELETE_KEY in 1.13 and APPEND in 2.1. Codes from 9 on exist in 2.1 only.
constexpr std::uint8_t kCodeDeleteOrAppend = 8;
constexpr std::uint8_t kFirstCodeOnlyIn21 = 9;
constexpr std::uint8_t kLastCodeOf22 = static_cast<std::uint8_t>(Op::barrier);

// torch 2.1 splits a request into packets of 1440 bytes. A pause after fewer bytes than this is
// therefore a real pause of the sender.
constexpr std::size_t kSurelyOnePacket = 1400;
// A length is trusted up to this size: so much is allocated at once, and more only when this much
// has really arrived.
constexpr std::size_t kTrustedLength = 1 << 20;
constexpr std::size_t kGrowth = 4;
// What is kept of a request for the next one: texts up to this size, and vectors up to this length.
constexpr std::size_t kSpareUpTo = 256;
constexpr std::size_t kTextsToKeep = 4;
// The cost of a text besides its bytes.
constexpr std::uint64_t kTextItself = sizeof(std::string);

Error malformed(std::string sentence) { return Error(ErrorCode::malformed, std::move(sentence)); }

Error too_much(Operation operation, std::uint64_t is, const char* what, std::uint64_t limit,
               const char* option) {
    return over_limit(std::string(to_string(operation)) + " with " + std::to_string(is) + what,
                      limit, option);
}

// Something else has connected, such as a browser or a port scanner.
Error not_a_store_client(std::uint64_t got) {
    char hex[24];
    std::snprintf(hex, sizeof hex, "0x%08llX", static_cast<unsigned long long>(got));
    return malformed(std::string("the first bytes are no TCPStore greeting: magic ") + hex +
                     ", expected 0x3C85F7CE; is this a client of another service?");
}

}  // namespace

Result<bool> Decoder::take(std::string_view& bytes, std::size_t burst) {
    if (std::exchange(complete_, false)) recycle();
    while (!bytes.empty() && !complete_) {
        Result<> done;
        if (stage_ == Stage::code) {
            const auto code = static_cast<std::uint8_t>(bytes.front());
            bytes.remove_prefix(1);
            done = begin(code);
        } else if (stage_ == Stage::number) {
            done = take_number(bytes);
        } else {
            done = take_text(bytes);
        }
        if (!done) return done.error();
    }
    // The peer has paused inside a request.
    if (burst > 0 && bytes.empty() && !complete_) judge_burst(burst);
    return complete_;
}

Result<> Decoder::feed(std::string_view bytes, bool burst_ends, std::vector<Request>& out) {
    const std::size_t burst = burst_ends ? bytes.size() : 0;
    for (;;) {
        const Result<bool> complete = take(bytes, burst);
        if (!complete) return complete.error();
        if (!*complete) return {};
        out.push_back(std::move(request_));
    }
}

// Reuses the memory of the last request, because most requests are small and alike. Memory of a
// large one is released.
void Decoder::recycle() {
    const auto recycle_texts = [this](std::vector<std::string>& texts, std::string Memory::*spare) {
        if (memory_ && !texts.empty() && texts[0].capacity() <= kSpareUpTo)
            memory_->*spare = std::move(texts[0]);
        texts.clear();
        if (texts.capacity() > kTextsToKeep) texts.shrink_to_fit();
    };
    recycle_texts(request_.keys, &Memory::spare_key);
    recycle_texts(request_.values, &Memory::spare_value);
    request_.number = 0;
}

Result<> Decoder::begin(std::uint8_t code) {
    code_ = code;
    request_bytes_ = 0;
    if (dialect_ == Dialect::unknown) {
        // Code 0 is the greeting (VALIDATE), or SET in an old dialect. The next four bytes decide:
        // a magic number, or the lower half of a key's length.
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
    next_field();
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
    if (code >= kFirstCodeOnlyIn21 && legacy_ == Dialect::torch_1_13) {
        return malformed("operation code " + std::to_string(code) +
                         " without a greeting; torch 1.13 knows 0 to 8");
    }
    // Only 2.1 has this code, so the dialect is known now.
    if (code >= kFirstCodeOnlyIn21) dialect_ = Dialect::torch_2_1;
    if (dialect_ == Dialect::torch_1_13) return kCodes113[code];
    return kCodes21[code];
}

// Every field begins with a number: the value itself, or the length of a text, or the count of a
// list.
void Decoder::expect(char field) {
    field_ = field;
    number_have_ = 0;
    number_want_ = field == 'm' || field == 'n' ? 4 : 8;
    stage_ = Stage::number;
}

// Goes on to the next field of the request, or completes it.
void Decoder::next_field() {
    if (texts_left_ > 0) {
        --texts_left_;
        expect(pairs_ && request_.keys.size() > request_.values.size() ? 'v' : 'k');
    } else if (!fields_.empty()) {
        const char field = fields_.front();
        fields_.remove_prefix(1);
        expect(field);
    } else {
        if (code_ == kCodeDeleteOrAppend && dialect_ == Dialect::legacy) {
            dialect_ = Dialect::torch_2_1;  // APPEND: it went on after the key
        }
        complete_ = true;
        if (memory_) memory_->used -= std::exchange(counted_, 0);
        stage_ = Stage::code;
    }
}

Result<> Decoder::take_number(std::string_view& bytes) {
    // A number may be cut anywhere by the network.
    const std::size_t taken = std::min<std::size_t>(number_want_ - number_have_, bytes.size());
    std::memcpy(number_.data() + number_have_, bytes.data(), taken);
    number_have_ = static_cast<std::uint8_t>(number_have_ + taken);
    bytes.remove_prefix(taken);
    if (number_have_ < number_want_) return {};
    return on_number(get_little_endian(number_.data(), number_want_));
}

Result<> Decoder::on_number(std::uint64_t number) {
    switch (field_) {
        case 'm':
            return on_greeting(static_cast<std::uint32_t>(number));
        case 'k':
        case 'v':
            return begin_text(number);
        case 'K':
        case 'P':
            if (number > limits_.max_keys) {
                return too_much(request_.operation, number, " keys", limits_.max_keys,
                                "--store-max-keys");
            }
            pairs_ = field_ == 'P';
            texts_left_ = pairs_ ? number * 2 : number;
            break;
        default:
            request_.number = static_cast<std::int64_t>(number);
    }
    next_field();
    return {};
}

Result<> Decoder::on_greeting(std::uint32_t magic) {
    if (magic == kGreetingMagic) {
        dialect_ = Dialect::torch_2_2;
        request_.operation = Operation::validate;
        fields_ = {};
        next_field();
        return {};
    }
    if (magic > limits_.max_key) return not_a_store_client(magic);
    // An old client's SET: the four bytes are the lower half of the length of its key, and the
    // upper half follows.
    dialect_ = legacy_;
    request_.operation = Operation::set;
    fields_ = shape_of(Operation::set).fields.substr(1);
    field_ = 'k';
    number_want_ = 8;
    return {};
}

Result<> Decoder::begin_text(std::uint64_t length) {
    const bool key = field_ == 'k';
    const std::uint64_t limit = key ? limits_.max_key : limits_.max_value;
    if (length > limit) {
        return too_much(request_.operation, length, key ? " bytes of key" : " bytes of value",
                        limit, key ? "--store-max-key" : "--store-max-value");
    }
    // The sum of all texts is limited as well, or many small texts could pass every single limit.
    request_bytes_ += length;
    if (request_bytes_ > limits_.max_request) {
        return too_much(request_.operation, request_bytes_, " bytes of keys and values",
                        limits_.max_request, "--store-max-request");
    }
    // Empty texts cost memory, too: a list may name a million empty keys.
    if (memory_) counted_ += kTextItself, memory_->used += kTextItself;
    text_ = &(key ? request_.keys : request_.values).emplace_back();
    if (memory_) *text_ = std::move(key ? memory_->spare_key : memory_->spare_value);
    text_->clear();
    text_length_ = length;
    if (length == 0) {
        next_field();
        return {};
    }
    stage_ = Stage::text;
    room_ = 0;
    return make_room();
}

Result<> Decoder::take_text(std::string_view& bytes) {
    const std::size_t taken = std::min<std::uint64_t>(text_length_ - text_->size(), bytes.size());
    while (text_->size() + taken > room_) {
        if (const Result<> room = make_room(); !room) return room;
    }
    text_->append(bytes.substr(0, taken));
    bytes.remove_prefix(taken);
    if (text_->size() == text_length_) next_field();
    return {};
}

// Allocates memory for the current text: up to kTrustedLength on the client's word, then always
// kGrowth times what has arrived. With all of it at once, a few clients that send a megabyte of a
// gigabyte and stop would hold the memory of the whole store. The price is a copy of a third of a
// large value.
Result<> Decoder::make_room() {
    const std::uint64_t want =
        std::min<std::uint64_t>(text_length_, room_ == 0 ? kTrustedLength : kGrowth * room_);
    const std::uint64_t more = want - room_;
    if (memory_) {
        // A value that cannot fit as a whole is refused as soon as bytes of it have come.
        if (!memory_->has_room_for(room_ == 0 ? more : text_length_ - room_)) {
            return no_room(std::string(to_string(request_.operation)) + " with " +
                               std::to_string(text_length_) + " bytes of key or value",
                           *memory_);
        }
        memory_->used += more;
        counted_ += more;
    }
    text_->reserve(want);
    room_ = want;
    return {};
}

std::string Decoder::progress() const {
    if (dialect_ == Dialect::unknown) return "the greeting";
    std::string text = to_string(request_.operation);
    if (stage_ != Stage::text) return text;
    return text + ", " + std::to_string(text_->size()) + " of " + std::to_string(text_length_) +
           " bytes of its " + (field_ == 'k' ? "key" : "value");
}

void Decoder::forget() {
    if (memory_) memory_->used -= std::exchange(counted_, 0);
    request_ = Request{};
}

// Called when the sender has paused inside a request. Only an old dialect that is still undecided
// can be recognized by this.
void Decoder::judge_burst(std::size_t burst_size) {
    if (dialect_ != Dialect::legacy || stage_ != Stage::number || number_have_ != 0) return;
    if (burst_size == 1 && request_.keys.empty()) {
        dialect_ = Dialect::torch_1_13;  // 1.13 sends the code in a packet of its own
        // The request was decoded as one of 2.1. Codes 7 and 8 mean something else in 1.13.
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
        next_field();
    }
}

}  // namespace ddprun::store

// The decoder of a server's answers.
#include "store/client/answer.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ddprun::store {
namespace {

// What the server sends for each operation, in the order of Operation. The letters are those of
// fields_; "T" stands for one text a key (MULTI_GET has no count of its own).
constexpr std::string_view kAnswers[] = {
    "", "", "t", "t", "i", "b", "b", "i", "i", "", "T", "", "b", "n", "", "P", "i", "L", "b", "b",
};

// Memory for a text is allocated in steps of this size. A step begins when the one before has
// arrived.
constexpr std::uint64_t kTrustedLength = 16 << 20;

std::string_view answer_of(Operation operation) {
    return kAnswers[static_cast<std::size_t>(operation)];
}

std::size_t bytes_of(char field) {
    if (field == 'b') return 1;
    return field == 'n' ? 4 : 8;
}

}  // namespace

bool has_answer(Operation operation) { return !answer_of(operation).empty(); }

void AnswerReader::expect(const Request& request) {
    const std::string_view fields = answer_of(request.operation);
    if (fields == "T") {
        fields_.append(request.keys.size(), 't');
    } else {
        fields_ += fields;
    }
}

// A long text is received directly into its string, everything else into the buffer.
std::span<char> AnswerReader::room() {
    // The buffer is empty while a text is incomplete, because parse() has moved its bytes into the
    // text.
    direct_ = text_left_ >= buffer_.size();
    if (direct_) {
        std::string& text = answer_.texts.back();
        direct_at_ = text.size();
        text.resize(direct_at_ + std::min(text_left_, kTrustedLength));
        return {text.data() + direct_at_, text.size() - direct_at_};
    }
    // What is not decoded yet moves to the front. It is less than one number, so this is cheap.
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    return {buffer_.data() + end_, buffer_.size() - end_};
}

Result<> AnswerReader::received(std::size_t count) {
    if (direct_) {
        answer_.texts.back().resize(direct_at_ + count);
        text_left_ -= count;
        direct_ = false;
        return {};
    }
    end_ += count;
    return parse();
}

// Decodes what is in the buffer, as far as it is complete.
Result<> AnswerReader::parse() {
    for (;;) {
        if (text_left_ > 0) {
            const std::size_t taken = std::min<std::uint64_t>(text_left_, end_ - begin_);
            answer_.texts.back().append(buffer_.data() + begin_, taken);
            begin_ += taken;
            text_left_ -= taken;
            if (text_left_ > 0) return {};
        }
        if (complete()) return {};
        const char field = fields_[fields_at_];
        const std::size_t size = bytes_of(field);
        // A number may be cut anywhere. Its first bytes stay in the buffer until the rest comes.
        if (end_ - begin_ < size) return {};
        const auto* at = reinterpret_cast<const unsigned char*>(buffer_.data() + begin_);
        const std::uint64_t number = get_little_endian(at, size);
        begin_ += size;
        ++fields_at_;
        if (field == 't') {
            if (Result<> begun = begin_text(number); !begun) return begun;
        } else if (field == 'L' && number > limits_.max_keys) {
            return Error(ErrorCode::malformed, "a list of " + std::to_string(number) +
                                                   " keys, over the limit of " +
                                                   std::to_string(limits_.max_keys));
        } else {
            count_is(field, static_cast<std::int64_t>(number));
        }
    }
}

Result<> AnswerReader::begin_text(std::uint64_t length) {
    // Checked before memory is allocated: the peer may be another program that happens to listen
    // there.
    if (length > limits_.max_value) {
        return Error(ErrorCode::malformed, "a value of " + std::to_string(length) +
                                               " bytes, over the limit of " +
                                               std::to_string(limits_.max_value));
    }
    answer_.texts.emplace_back();
    text_left_ = length;
    return {};
}

// Some numbers say what follows: the length of a queue if it had an element, the count of a list.
void AnswerReader::count_is(char field, std::int64_t count) {
    answer_.numbers.push_back(count);
    if (field == 'P' && count > 0) fields_.insert(fields_at_, 1, 't');
    if (field == 'L') fields_.insert(fields_at_, static_cast<std::size_t>(count), 't');
}

Answer AnswerReader::take() {
    fields_.clear();
    fields_at_ = 0;
    return std::exchange(answer_, {});
}

}  // namespace ddprun::store

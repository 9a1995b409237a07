// The safetensors format, written and parsed. Pure: files are texts in memory.
#include "trainer/snapshot/format/safetensors.h"

#include <gtest/gtest.h>

#include <array>

namespace ddprun::trainer {
namespace {

std::span<const std::byte> bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

// A file with this header and data: the length in eight bytes, lowest first, before them. Nothing
// is checked, so tests can build broken files.
std::string file_of(std::string header, const std::string& data) {
    std::string length(8, '\0');
    for (int i = 0; i < 8; ++i) length[i] = static_cast<char>(header.size() >> (8 * i));
    return length + header + data;
}

// Two tensors are written and read back. The exact bytes count, since Python's tools read them too:
// the wider type comes first in the data, so that each is aligned, and spaces pad the header to a
// page, so that the data can be mapped.
TEST(Safetensors, WritesWhatItReads) {
    const std::array<float, 2> a{1, 2};
    const std::array<double, 1> b{3};
    const std::vector<TensorView> tensors{tensor_view("a", {2, 1}, std::span<const float>(a)),
                                          tensor_view("b", {}, std::span<const double>(b))};
    auto head = safetensors_head(tensors, {{"format", "pt"}});
    ASSERT_TRUE(head) << head.error();
    EXPECT_EQ(head->size(), 4096u);
    // 0xff8 = 4088: the page without these eight bytes.
    EXPECT_EQ(head->substr(0, 8), std::string("\xf8\x0f\0\0\0\0\0\0", 8));
    EXPECT_EQ(
        head->substr(8, head->find_last_not_of(' ') - 7),
        R"({"__metadata__":{"format":"pt"},"a":{"data_offsets":[8,16],"dtype":"F32","shape":[2,1]},)"
        R"("b":{"data_offsets":[0,8],"dtype":"F64","shape":[]}})");
    std::string file = *head;
    for (auto index : data_order(tensors)) {
        file.append(reinterpret_cast<const char*>(tensors[index].data.data()),
                    tensors[index].data.size());
    }
    auto parsed = parse_safetensors(bytes(file));
    ASSERT_TRUE(parsed) << parsed.error();
    EXPECT_EQ(parsed->metadata.at("format"), "pt");
    EXPECT_EQ(parsed->find("a")->shape, (std::vector<std::uint64_t>{2, 1}));
    EXPECT_EQ(parsed->find("b")->data.size(), 8u);
    EXPECT_EQ(parsed->find("c"), nullptr);
}

// Each rule of the format, broken once. A snapshot may come from anywhere, so a wrong length must
// give an error and never a read beyond the memory.
TEST(Safetensors, SaysWhereSlicesLie) {
    const std::array<float, 4> a{1, 2, 3, 4};
    std::vector<TensorView> tensors{tensor_view("w", {2, 2}, std::span<const float>(a)),
                                    tensor_view("w", {2, 2}, std::span<const float>(a)),
                                    tensor_view("d", {4}, std::span<const float>(a))};
    tensors[0].place = Place{{4, 4}, {2, 0}};
    tensors[1].place = Place{{4, 4}, {0, 2}};
    tensors[2].place = Place{{4}, {0}};
    auto head = safetensors_head(tensors, {});
    ASSERT_TRUE(head) << head.error();
    EXPECT_NE(head->find(R"("w[2:4, 0:2]":{"data_offsets":[32,48],"dtype":"F32","shape":[2,2]})"),
              std::string::npos)
        << *head;
    std::string file = *head;
    for (auto index : data_order(tensors))
        file.append(reinterpret_cast<const char*>(tensors[index].data.data()), 16);
    const auto parsed = parse_safetensors(bytes(file));
    ASSERT_TRUE(parsed) << parsed.error();
    EXPECT_TRUE(parsed->metadata.empty());
    ASSERT_EQ(parsed->tensors.size(), 3u);
    EXPECT_EQ(parsed->tensors[1].name, "w");
    EXPECT_EQ(parsed->tensors[1].place, tensors[1].place);
    EXPECT_EQ(parsed->tensors[2].place, tensors[0].place);
    // Only a whole one is found by its name.
    EXPECT_EQ(parsed->find("w"), nullptr);
    EXPECT_NE(parsed->find("d"), nullptr);
    tensors[0].place->offset = {3, 0};
    EXPECT_FALSE(safetensors_head(tensors, {}));
}

// What the metadata say of slices is not trusted.
TEST(Safetensors, RefusesNonsenseAboutSlices) {
    const auto with = [](const std::string& slices) {
        const std::string header = R"({"__metadata__":{"slices":")" + slices +
                                   R"("},"s":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})";
        return static_cast<bool>(parse_safetensors(bytes(file_of(header, "abcd"))));
    };
    const auto slice = [](const char* whole, const char* offset) {
        return std::string(R"({\"s\":{\"tensor\":\"w\",\"whole\":)") + whole + R"(,\"offset\":)" +
               offset + "}}";
    };
    EXPECT_TRUE(with(slice("[8]", "[4]")));
    EXPECT_FALSE(with(slice("[8]", "[5]")));
    EXPECT_FALSE(with(slice("[8]", "[-1]")));
    EXPECT_FALSE(with(slice("[8]", "[18446744073709551615]")));
    EXPECT_FALSE(with(slice("[8, 1]", "[4, 0]")));
    EXPECT_FALSE(with(slice("[\\\"8\\\"]", "[4]")));
    EXPECT_FALSE(with(slice("8", "[4]")));
    EXPECT_FALSE(with("[]"));
    EXPECT_FALSE(with("x"));
    EXPECT_FALSE(with(R"({\"s\":[]})"));
}

TEST(Safetensors, RefusesWhatBreaksTheFormat) {
    const std::string good = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
    ASSERT_TRUE(parse_safetensors(bytes(file_of(good, std::string(8, 'x')))));
    // In order: too short, wrong JSON, data that are too short or too long, wrong offsets, wrong
    // shapes (one whose product overflows), a gap, an overlap, and members of a wrong type.
    const std::vector<std::string> bad{
        "",
        "1234567",
        file_of("", ""),
        file_of(" {}", ""),
        file_of("{", ""),
        file_of("[]", ""),
        std::string(8, '\xff'),
        file_of(good, std::string(7, 'x')),
        file_of(good, std::string(9, 'x')),
        file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", "12345678"),
        file_of(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", "12345678"),
        file_of(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", "12345678"),
        file_of(R"({"a":{"dtype":"Q7","shape":[2],"data_offsets":[0,8]}})", "12345678"),
        file_of(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})",
                ""),
        file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", "12345678"),
        file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                R"("b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
                "12345678"),
        file_of(R"({"a":7})", ""),
        file_of(R"({"__metadata__":{"x":7}})", "")};
    for (const auto& file : bad) {
        auto parsed = parse_safetensors(bytes(file));
        ASSERT_FALSE(parsed) << file;
        EXPECT_EQ(parsed.error().code(), ErrorCode::malformed);
    }
}

// A file that was cut short anywhere is refused.
TEST(Safetensors, RefusesEveryPrefix) {
    const std::string file =
        file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "12345678");
    for (std::size_t size = 0; size < file.size(); ++size) {
        EXPECT_FALSE(parse_safetensors(bytes(file.substr(0, size)))) << size;
    }
}

// A name that occurs twice, or data that do not fit the shape: the mistake is the caller's, and
// must not reach the disk.
TEST(Safetensors, RefusesToWriteNonsense) {
    const std::array<float, 2> a{1, 2};
    const auto view = tensor_view("a", {2}, std::span<const float>(a));
    EXPECT_FALSE(safetensors_head({view, view}, {}));
    EXPECT_FALSE(safetensors_head({tensor_view("a", {3}, std::span<const float>(a))}, {}));
}

// Readers, ours and Python's, take headers of 100,000,000 bytes. What is longer is not written.
TEST(Safetensors, RefusesAHeaderThatNoReaderTakes) {
    const std::vector<TensorView> tensors(
        1, {std::string(100'000'000, 'n'), DataType::uint8, {0}, {}});
    const auto head = safetensors_head(tensors, {});
    ASSERT_FALSE(head);
    EXPECT_EQ(head.error().code(), ErrorCode::usage);
    EXPECT_NE(head.error().sentence().find("in the header of a file"), std::string::npos);
}

}  // namespace
}  // namespace ddprun::trainer

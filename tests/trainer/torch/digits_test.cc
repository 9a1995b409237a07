// MNIST's files, real ones and bad ones: each is one sentence with the file, what is wrong, and
// what to do.
#include "examples/torch/digits.h"

#include <gtest/gtest.h>

#include "tests/trainer/ranks.h"

namespace example {
namespace {

const std::string kImages = "train-images-idx3-ubyte", kLabels = "train-labels-idx1-ubyte";

// The bytes of an IDX file, as MNIST's own are: type and sizes with the highest byte first.
std::string idx(std::uint32_t kind, const std::vector<std::uint32_t>& sizes,
                const std::vector<std::uint8_t>& content) {
    std::string bytes;
    const auto add = [&](std::uint32_t number) {
        for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift);
    };
    add(kind);
    for (auto size : sizes) add(size);
    bytes.append(content.begin(), content.end());
    return bytes;
}

// A folder with three images and their labels.
struct Mnist {
    Mnist() {
        write(kImages, idx(0x803, {3, 28, 28}, digits.images));
        write(kLabels, idx(0x801, {3}, digits.labels));
    }
    void write(const std::string& name, const std::string& bytes) const {
        ddprun::trainer::test::write_all(folder.path() / name, bytes);
    }
    // What is said about the folder, which is called DATA in it.
    std::string sentence() const {
        const auto loaded = load_digits(folder, "train");
        if (loaded) return "no error";
        EXPECT_EQ(loaded.error().code(), ddprun::ErrorCode::usage);
        std::string text = loaded.error().sentence();
        const std::string name = folder;
        for (auto at = text.find(name); at != text.npos; at = text.find(name))
            text.replace(at, name.size(), "DATA");
        return text;
    }
    ddprun::trainer::test::TemporaryFolder folder;
    Digits digits = made_digits(3, 7);
};

TEST(Digits, ReadsRealFiles) {
    const Mnist data;
    const auto loaded = load_digits(data.folder, "train");
    ASSERT_TRUE(loaded);
    EXPECT_EQ(loaded->images, data.digits.images);
    EXPECT_EQ(loaded->labels, data.digits.labels);
}

// As archives and torchvision have them. Some archives have folders with the usual names, too.
TEST(Digits, FindsTheNamesThatPeopleHave) {
    const Mnist data;
    const auto& folder = data.folder.path();
    std::filesystem::rename(folder / kImages, folder / "train-images.idx3-ubyte");
    std::filesystem::create_directory(folder / kImages);
    EXPECT_EQ(data.sentence(), "no error");
    std::filesystem::create_directories(folder / "MNIST" / "raw");
    std::filesystem::rename(folder / kLabels, folder / "MNIST" / "raw" / kLabels);
    EXPECT_EQ(data.sentence(), "no error");
    std::filesystem::rename(folder / "MNIST" / "raw" / kLabels, folder / "train-labels.gz");
    data.write("train-labels.idx1-ubyte.gz", "\x1f\x8b\b");
    EXPECT_EQ(data.sentence(),
              "DATA/train-labels.idx1-ubyte is still packed; unpack it: gunzip "
              "DATA/train-labels.idx1-ubyte.gz");
}

// A file that is not there, not a file, or still packed, under each of its names.
TEST(Digits, NamesAFileThatCannotBeRead) {
    const Mnist data;
    const auto labels = data.folder.path() / kLabels;
    std::filesystem::remove(labels);
    EXPECT_EQ(data.sentence(), "cannot open DATA/" + kLabels +
                                   ": No such file or directory; --data needs MNIST's four files");
    std::filesystem::create_directory(labels);
    EXPECT_EQ(data.sentence(),
              "cannot read DATA/" + kLabels + ": it is a folder; --data needs MNIST's four files");
    std::filesystem::remove(labels);
    data.write(kLabels + ".gz", "\x1f\x8b\b");
    EXPECT_EQ(data.sentence(),
              "DATA/" + kLabels + " is still packed; unpack it: gunzip DATA/" + kLabels + ".gz");
    std::filesystem::rename(labels.string() + ".gz", labels);
    EXPECT_EQ(data.sentence(),
              "DATA/" + kLabels + " is packed in spite of its name; unpack it: mv DATA/" + kLabels +
                  " DATA/" + kLabels + ".gz && gunzip DATA/" + kLabels + ".gz");
}

// The other kind of file, the lowest byte first, and none of the format.
TEST(Digits, NamesAnotherFormat) {
    const Mnist data;
    const auto named = [&](const std::string& number) {
        return "DATA/" + kImages + " is no IDX file of bytes with 3 dimension(s): it begins with " +
               number + ", not with 0x00000803; take MNIST's file of this name";
    };
    data.write(kImages, idx(0x801, {2352}, data.digits.images));
    EXPECT_EQ(data.sentence(), named("0x00000801"));
    data.write(kImages, idx(0x03080000, {3, 28, 28}, data.digits.images));
    EXPECT_EQ(data.sentence(), named("0x03080000"));
    data.write(kImages, std::string(100, 'x'));
    EXPECT_EQ(data.sentence(), named("0x78787878"));
    data.write(kImages, "");
    EXPECT_EQ(data.sentence(),
              "DATA/" + kImages + " has 0 bytes, fewer than the 16 of its head; copy it again");
}

// Cut short, too long, and a size whose product does not fit 64 bits.
TEST(Digits, NamesAWrongSize) {
    const Mnist data;
    const auto whole = idx(0x803, {3, 28, 28}, data.digits.images);
    const auto named = [&](const std::string& has) {
        return "DATA/" + kImages + " has " + has + "; copy it again";
    };
    data.write(kImages, whole.substr(0, whole.size() - 1));
    EXPECT_EQ(data.sentence(), named("2351 bytes of data, not 2352"));
    data.write(kImages, whole + "x");
    EXPECT_EQ(data.sentence(), named("2353 bytes of data, not 2352"));
    data.write(kImages, idx(0x803, {0xffffffff, 28, 28}, data.digits.images));
    EXPECT_EQ(data.sentence(), named("2352 bytes of data, not 3367254359280"));
    data.write(kImages, idx(0x803, {3, 0xffffffff, 0xffffffff}, {}));
    EXPECT_EQ(data.sentence(), "DATA/" + kImages +
                                   " has images of 4294967295 x 4294967295 pixels, not 28 x 28; "
                                   "scale them");
    data.write(kImages, idx(0x803, {3, 28, 32}, data.digits.images));
    EXPECT_EQ(data.sentence(),
              "DATA/" + kImages + " has images of 28 x 32 pixels, not 28 x 28; scale them");
    data.write(kImages, idx(0x803, {0, 28, 28}, {}));
    EXPECT_EQ(data.sentence(), "DATA/" + kImages + " is empty; take MNIST's file of this name");
}

// Files that are each right and do not belong together, and a label that is no digit.
TEST(Digits, NamesWrongLabels) {
    const Mnist data;
    data.write(kLabels, idx(0x801, {4}, {1, 2, 3, 4}));
    EXPECT_EQ(data.sentence(), "DATA/" + kImages + " has 3 images and DATA/" + kLabels +
                                   " has 4 labels; take both files from one place");
    data.write(kLabels, idx(0x801, {3}, {9, 0, 10}));
    EXPECT_EQ(data.sentence(), "DATA/" + kLabels +
                                   " has the label 10 at place 2, not one of 0 to 9; copy it "
                                   "again");
}

}  // namespace
}  // namespace example

// The stacks of CPython from its memory. memory/3.X.txt is what was read from real processes with
// record_memory.cc: lines of address and bytes, and at the end the file that has the interpreter.
// They ran this script:
//
//       1  import _thread, time                      11      time.sleep(1000)
//       2  class Trainer:                            12  def ünïcode_日本():
//       3      def evaluate(self, n):                13      for x in gen():
//       4          x = [1,                           14          pass
//       5               2]                           15  _thread.start_new_thread(
//       6          if n: return self.evaluate(n-1)             ünïcode_日本, ())
//       7          (lambda: (                        16  time.sleep(0.2)
//       8              time.sleep(1000)))()          17  Trainer().evaluate(2)
//       9  def gen():
//      10      yield 1
#include "diagnosis/stacks/python_stack.h"

#include <gmock/gmock.h>

#include <boost/algorithm/hex.hpp>
#include <fstream>
#include <map>
#include <sstream>

namespace ddprun::agent {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;
using testing::SizeIs;

class RecordedMemory : public Memory {
  public:
    explicit RecordedMemory(const std::string& version) {
        std::ifstream file(DDPRUN_TEST_DATA "/" + version + ".txt");
        std::string first, second;
        while (file >> first >> second)
            if (first.starts_with("lib"))
                name = first, load = number(second);
            else
                reads[number(first)] = boost::algorithm::unhex(second);
        EXPECT_NE(name, "") << "nothing recorded for " << version;
    }
    bool read(Address from, void* to, std::size_t size) override {
        ++count;
        if (const auto change = changes.find(from); change != changes.end()) {
            std::memcpy(to, &change->second, std::min(size, sizeof change->second));
            return true;
        }
        const auto found = reads.find(from);
        if (found == reads.end() || found->second.size() < size) return false;
        std::memcpy(to, found->second.data(), size);
        return true;
    }
    std::vector<PythonThread> stack() {
        const PythonRuntime runtime = find_python(*this, load, name);
        const auto layout = python_layout(*this, runtime);
        return layout ? python_stack(*this, runtime, *layout) : std::vector<PythonThread>{};
    }

    std::map<Address, std::string> reads;
    std::map<Address, Address> changes;  // what the process has there in place of it
    std::string name;
    Address load = 0;
    int count = 0;

  private:
    static Address number(const std::string& text) { return std::stoull(text, nullptr, 16); }
};

class EachVersion : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(PythonStack, EachVersion,
                         testing::Values("3.9", "3.10", "3.11", "3.12", "3.13"));

std::vector<std::string> texts(const PythonThread& thread) {
    std::vector<std::string> all;
    for (const PythonFrame& frame : thread.frames) all.push_back(frame_text(frame));
    return all;
}

// The main thread comes first. Functions of 3.11 and later have their class before them.
TEST_P(EachVersion, ShowsAllThreads) {
    RecordedMemory memory(GetParam());
    const std::vector<PythonThread> threads = memory.stack();
    ASSERT_THAT(threads, SizeIs(2));
    const bool classes = std::string(GetParam()) != "3.9" && std::string(GetParam()) != "3.10";
    const std::string of = classes ? "Trainer." : "";
    const std::string lambda = classes ? "Trainer.evaluate.<locals>.<lambda>" : "<lambda>";
    EXPECT_THAT(texts(threads[0]),
                ElementsAre(lambda + " (/tmp/hang.py:8)", of + "evaluate (/tmp/hang.py:7)",
                            of + "evaluate (/tmp/hang.py:6)", of + "evaluate (/tmp/hang.py:6)",
                            "<module> (/tmp/hang.py:17)"));
    EXPECT_THAT(texts(threads[1]),
                ElementsAre("gen (/tmp/hang.py:11)", "ünïcode_日本 (/tmp/hang.py:13)"));
    EXPECT_GT(threads[0].id, 1);
    EXPECT_GT(threads[1].id, threads[0].id);
    // Both sleep.
    EXPECT_FALSE(threads[0].holds_gil || threads[1].holds_gil);
}

// Each pointer in turn cannot be read, points to itself, or into nothing, and each text and table
// is as long as can be. The reader comes back each time, and has not read without end.
TEST_P(EachVersion, SurvivesBrokenMemory) {
    RecordedMemory whole(GetParam());
    whole.stack();
    const int usual = whole.count;
    for (const auto& [address, bytes] : whole.reads)
        for (const Address wrong : {Address{0}, address, ~Address{0}, Address{1} << 62}) {
            RecordedMemory memory(GetParam());
            memory.changes[address] = wrong;
            memory.stack();
            EXPECT_LT(memory.count, usual + 60'000) << std::hex << address << " is " << wrong;
        }
}

// Built by hand after Include/internal/pycore_debug_offsets.h of 3.14, whose description has other
// places than that of 3.13: one thread, one frame, whose reference to the code has its lowest bit
// set.
class Described : public Memory {
  public:
    bool read(Address from, void* to, std::size_t size) override {
        if (from < kBegin || from + size > kBegin + bytes.size()) return false;
        std::memcpy(to, bytes.data() + (from - kBegin), size);
        return true;
    }
    template <typename Value>
    void put(Address at, Value value) {
        std::memcpy(bytes.data() + (at - kBegin), &value, sizeof value);
    }
    void word(std::size_t index, std::uint64_t value) { put(kBegin + 8 * index, value); }
    void text(Address at, const std::string& letters) {
        put<std::uint64_t>(at + 16, letters.size());
        put<std::uint32_t>(at + 32, 1 << 2 | 1 << 5 | 1 << 6);
        std::memcpy(bytes.data() + (at + 40 - kBegin), letters.data(), letters.size());
    }
    static constexpr Address kBegin = 0x10000;
    std::string bytes = std::string(0x4000, '\0');
};

TEST(PythonStack, Of314) {
    constexpr Address kInterpreter = 0x11000, kThread = 0x11800, kFrame = 0x12000, kCode = 0x12800,
                      kFile = 0x13000, kName = 0x13100, kLines = 0x13200;
    Described memory;
    memory.put(Described::kBegin, *reinterpret_cast<const std::uint64_t*>("xdebugpy"));
    const std::map<std::size_t, std::uint64_t> offsets{
        {1, 0x030e00f0}, {5, 0x300},  // version; runtime: interpreters
        {8, 8},          {9, 16},    {16, 0x100}, {18, 0x110}, {19, 0x108},  // interpreter and GIL
        {24, 8},         {26, 72},   {27, 80},    {28, 88},                  // thread
        {32, 8},         {33, 0},    {34, 56},    {36, 74},                  // frame
        {40, 112},       {42, 128},  {43, 136},   {44, 68},    {48, 208},    // code
        {75, 16},        {76, 32},   {78, 32},    {79, 16},    {80, 40}};    // bytes, text
    for (const auto& [index, offset] : offsets) memory.word(index, offset);
    memory.put(Described::kBegin + 0x300, kInterpreter);
    memory.put(kInterpreter + 16, kThread);
    memory.put(kInterpreter + 0x110, 1);
    memory.put(kInterpreter + 0x108, kThread);
    memory.put(kThread + 72, kFrame);
    memory.put<std::uint64_t>(kThread + 88, 4711);
    memory.put(kFrame, kCode | 1);
    memory.put(kFrame + 56, kCode + 208 + 2);
    memory.put(kCode + 112, kFile);
    memory.put(kCode + 128, kName);
    memory.put(kCode + 136, kLines);
    memory.put<std::int32_t>(kCode + 68, 20);
    memory.text(kFile, "/home/ada/train.py");
    memory.text(kName, "main");
    // Two entries without columns, of an instruction each: the same line, then two lines on.
    const std::string table("\xe8\x00\xe8\x04", 4);
    memory.put<std::uint64_t>(kLines + 16, table.size());
    memory.put(kLines + 32, *reinterpret_cast<const std::uint32_t*>(table.data()));

    const PythonRuntime runtime{Described::kBegin, 14};
    const auto layout = python_layout(memory, runtime);
    ASSERT_TRUE(layout);
    EXPECT_THAT(
        python_stack(memory, runtime, *layout),
        ElementsAre(AllOf(Field(&PythonThread::id, 4711), Field(&PythonThread::holds_gil, true),
                          Field(&PythonThread::frames,
                                ElementsAre(PythonFrame{"/home/ada/train.py", "main", 22})))));

    // Built without the GIL, it keeps its objects in another way.
    memory.word(2, 1);
    EXPECT_FALSE(python_layout(memory, runtime));
    EXPECT_FALSE(python_layout(memory, {Described::kBegin, 15}));
    EXPECT_FALSE(python_layout(memory, {Described::kBegin, 8}));
}

// What the user wrote is read first.
TEST(PythonFrames, TellsTheUsersOwn) {
    EXPECT_TRUE(is_users_own({"/home/ada/train.py", "main", 1}));
    EXPECT_TRUE(is_users_own({"train.py", "main", 1}));
    EXPECT_FALSE(is_users_own({"/usr/lib/python3/dist-packages/torch/optim/adam.py", "step", 1}));
    EXPECT_FALSE(is_users_own({"/home/ada/venv/lib/python3.11/site-packages/x.py", "step", 1}));
    EXPECT_FALSE(is_users_own({"/usr/lib/python3.11/threading.py", "run", 982}));
    EXPECT_FALSE(is_users_own({"<frozen importlib._bootstrap>", "_find_and_load", 1}));
    EXPECT_FALSE(is_users_own({}));
    EXPECT_EQ(frame_text({"eval.py", "Trainer.evaluate", 88}), "Trainer.evaluate (eval.py:88)");
    EXPECT_EQ(frame_text({"eval.py", "main", 0}), "main (eval.py)");
    EXPECT_EQ(frame_text({}), "?");
}

// DDP's own operations are no line of the user's.
TEST(PythonFrames, TellTheOperationOfTorch) {
    const std::string torch = "/venv/lib/python3.11/site-packages/torch/distributed/";
    const std::vector<PythonFrame> frames{{torch + "distributed_c10d.py", "Work.wait", 1},
                                          {torch + "distributed_c10d.py", "all_reduce", 2},
                                          {torch + "c10d_logger.py", "f.<locals>.wrapper", 3},
                                          {"train.py", "train", 9},
                                          {"train.py", "main", 20}};
    EXPECT_EQ(called_operation(frames, 3), "all_reduce");
    EXPECT_EQ(called_operation({{"train.py", "train", 9}}, 0), "");
}

}  // namespace
}  // namespace ddprun::agent

// Which line an instruction belongs to. The tables are those of real code objects:
//
//      1  def f(a,            7          y = g(          13
//      2        b):           8              a,          14
//      3      x = [a,         9                          15
//      4           b]        10              b)          16      finally:
//      5      for i in (     11      try:                17          x = 3
//      6          1, 2):     12          pass            18      return (x +
//                                                        19              y)
//
// The lines are what co_lines() (before 3.10 dis.findlinestarts()) says for each instruction.
#include "diagnosis/stacks/python_lines.h"

#include <gmock/gmock.h>

#include <boost/algorithm/hex.hpp>

namespace ddprun::agent {
namespace {

using Lines = std::vector<int>;

Lines all_lines(LineTable kind, const std::string& hexadecimal, std::size_t instructions) {
    const std::string table = boost::algorithm::unhex(hexadecimal);
    Lines lines;
    for (std::size_t i = 0; i < instructions; ++i)
        lines.push_back(python_line(kind, table, 1, static_cast<std::int64_t>(2 * i)));
    return lines;
}

TEST(PythonLines, Of39) {
    EXPECT_EQ(all_lines(LineTable::lnotab,
                        "0002020102ff040208020201020202fd0604020102050c01020102ff", 26),
              (Lines{3, 4,  3,  3,  5,  5,  5,  5,  7,  8,  10, 7,  7,
                     7, 11, 12, 17, 17, 17, 17, 17, 17, 18, 19, 18, 18}));
}

TEST(PythonLines, Of310) {
    EXPECT_EQ(all_lines(LineTable::ranges,
                        "0202020104ff080202020201020206fd0204020104050201020104ff06ff", 25),
              (Lines{3, 4,  3,  3,  5,  5,  5,  5,  7,  8,  10, 7, 7,
                     7, 11, 12, 17, 17, 18, 19, 18, 18, 17, 17, 17}));
}

// An instruction that belongs to no line (0) is one that re-raises an exception.
TEST(PythonLines, Of311) {
    EXPECT_EQ(
        all_lines(LineTable::locations,
                  "8000e0090ad8090af00301090c8041f004010e0ef00005050ff00005050f8801e50c0dd80c0de0"
                  "0c0df107030d0ff400030d0f88018801f00806050ed8080cf00a000d0e88018801f88041880188"
                  "05880588058805d80c0dd80c0df103010d0ef00001050f",
                  29),
        (Lines{1, 3,  4, 3, 3, 5, 5, 5, 5, 7, 7, 7,  7,  7, 7,
               8, 10, 7, 7, 7, 7, 7, 7, 7, 7, 7, 11, 12, 17}));
}

TEST(PythonLines, Of313) {
    EXPECT_EQ(
        all_lines(LineTable::locations,
                  "8000e0090ad8090af00301090c8041f304010e0e8801e40c0dd80c0de00c0df307030d0f8a01f1"
                  "05010e0ef00c06050ed8080cf00a000d0e8801d80c0dd80c0df103010d0ef00001050ff8f00300"
                  "0d0e8901fa",
                  42),
        (Lines{1, 3, 4, 3, 3, 5,  5,  5,  5,  5,  7,  7,  7,  7,  7, 8,  10, 7,  7, 7, 7,
               7, 7, 7, 5, 5, 11, 12, 17, 17, 18, 19, 18, 18, 18, 0, 17, 17, 17, 0, 0, 0}));
}

// The instruction comes from another process, and so does the table.
TEST(PythonLines, OfNonsense) {
    for (const LineTable kind : {LineTable::lnotab, LineTable::ranges, LineTable::locations})
        for (const std::string table : {"", "\x01", "\xff\xff\xff", "\x80\xf0\x7f", "abcdefgh"})
            for (const std::int64_t offset : {std::int64_t{-2}, INT64_MAX, INT64_MIN}) {
                const int line = python_line(kind, table, INT32_MAX, offset);
                EXPECT_GE(line, 0);
            }
}

}  // namespace
}  // namespace ddprun::agent

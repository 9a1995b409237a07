// What the estimate makes of secrets that people and programs write.
#include "rendezvous/secret/secret_strength.h"

#include <gtest/gtest.h>

#include <string>

namespace ddprun::rendezvous {
namespace {

// What the usual commands print, once each: 16 bytes of chance at least.
TEST(GuessBits, AreEnoughForWhatProgramsMake) {
    for (const std::string_view made :
         {"d3xaPHqYbWQ2xVJb7wYJw1xBGfYdkVyTqPs0ZmXoC4E=",  // head -c 32 /dev/urandom | base64
          "0f1d8c6a94be72351e07fdc2b89a6453",              // openssl rand -hex 16
          "7b0c9f62-2d5e-4c1a-9a5f-e10b4d8376c2",          // uuidgen
          "m3k9x7q2v8t4w6z1p5r0"})                         // pwgen 20
        EXPECT_GE(guess_bits(made), kLeastGuessBits) << made;
    const std::string raw("\x8f\x02\xd1\x77\x3a\xe9\x10\xb4\x5c\xff\x29\x81\xc6\x0e\x93\x48", 16);
    EXPECT_EQ(guess_bits(raw), 128);
}

// Long enough for a look at the length alone, and guessed in an afternoon.
TEST(GuessBits, AreTooFewForWhatPeopleMake) {
    for (const std::string_view made :
         {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "0123456789abcdefghijklmnopqrstuvwxyz",
          "passwordpasswordpassword", "my secret of the job",
          "It's a Secret of Two Nodes, isn't it", "20260101-20260102-20260103",
          "Abc123Abc123Abc123Abc123", "1234567890123456789012", "deadbeefdeadbeefdeadbeef", ""})
        EXPECT_LT(guess_bits(made), kLeastGuessBits) << made;
}

// Words count two bits a letter, so a whole sentence that nobody has written yet is enough.
TEST(GuessBits, CountWordsAsWords) {
    EXPECT_LT(guess_bits("correct horse battery staple"), 60);
    EXPECT_GE(guess_bits("seven green whales signed the lease for our attic last monday"),
              kLeastGuessBits);
}

}  // namespace
}  // namespace ddprun::rendezvous

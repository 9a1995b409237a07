// Tells from the first bytes of a connection who is calling. The bytes are only looked at and stay
// in the socket. Pure.
//
//   "DDPRUN\x01\n" and a first frame with a Hello   a node, over the agent link
//   the same with an Operate                        an operator
//   0x00 … 0x12                                     c10d: every client of PyTorch's store begins
//                                                   with the code of a request, VALIDATE (0) since
//                                                   2.2, ADD, COMPARE_SET or another before
//   anything else                                   a stranger
//
// gRPC (the preface "PRI * HTTP/2.0") and HTTP's GET begin with capital letters. Another service of
// the Endpoint would need one more line here.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>

#include "rendezvous/model/messages.h"

namespace ddprun::rendezvous {

struct NeedsMore {  // look again when this many bytes have come, counted from the first one
    std::size_t bytes = 1;
};
struct AgentLink {
    Hello hello;  // its run id names the job
};
// A client of PyTorch's store.
struct C10d {};
struct Stranger {
    std::string sentence;  // what is wrong: 'begins with "GET / HTT", which is none of ours'
};
// One of the four.
using FirstBytes = std::variant<NeedsMore, AgentLink, C10d, Stranger>;

// Never asks for more bytes than the preface, a length and kFirstFrameLimit (frame.h).
FirstBytes judge_first_bytes(std::string_view first_bytes);

}  // namespace ddprun::rendezvous

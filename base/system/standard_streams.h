// Standard streams that the caller has closed. The next descriptor that is opened would take the
// number of a closed stream (0, 1 or 2), and text for the stream would go into that socket or file.
// gRPC opens an eventfd before main(), and workers got it as their standard input.
#pragma once

namespace ddprun {

// Closed streams are opened on /dev/null before any library's initialiser runs. Calling this does
// no more: a program that calls it has that first step linked in.
void have_standard_streams();

// Whether the caller had closed standard output (`>&-`): what is written to it reaches nobody.
bool standard_output_was_closed();

}  // namespace ddprun

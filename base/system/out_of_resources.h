// Ends the process with one line and a code of its own when memory or threads have run out, instead
// of the abort and the core file that a bug gets.
//
// Memory and threads are needed everywhere, so no function can say what it does without them. What
// belongs to the job is cleaned up as after any sudden death of the process: the keeper does it.
#pragma once

namespace ddprun {

// Call it in main(). `program` begins the line. An exception of another kind, or none, still
// aborts.
void end_without_resources(const char* program, int exit_code);

}  // namespace ddprun

// Keeps the pages of this program in memory.
//
// A program is mapped from its file. When memory is short, the kernel drops pages that nobody has
// used for a while, and reads them again when somebody does. If the file system hangs at that
// moment, so does the thread: no beat, no kill at a deadline. A locked page stays.
//
// What is locked is on fault: nothing is read for it, and what has not been used yet takes no
// memory. RLIMIT_MEMLOCK counts the whole range all the same (the limit is often 8 MiB). Where it
// is too low, those pages are locked that this process has used so far, as many as may be. Heap and
// stacks are not locked: they leave memory only for a swap device.
//
// ddprun has a part that a running job seldom uses (cmake/seldom_used.cmake): 9 MiB of 15, with
// what exceptions need to pass it. It comes last where the limit is low. The rest with its
// variables takes less than 6 MiB.
//
// Locks go to no child: fork() does not copy them, and exec() ends them. Thread: any.
// Source: mlock(2), proc_pid_pagemap(5).
#pragma once

#include <cstddef>

namespace ddprun {

// Locks what may be locked, and may be called again when more has been used. Returns how many bytes
// of the program's range are locked now; 0 where the limit, or the kernel, allows nothing.
std::size_t lock_program();

// Reads those pages that nobody has used yet, so that they are locked, too: code that runs only
// when something fails. What is seldom used is left out. Other processes of this program find the
// pages in the page cache. Nothing is read where the limit does not allow to lock all of these code
// and constants, or on kernels before 5.14.
// Thread: any but a loop's: it blocks as long as the file system does.
void fetch_program();

// The same for what is seldom used, before somebody uses it. Thread: as fetch_program().
void fetch_seldom_used();

// Takes what is seldom used out of this process's memory, with what the index for exceptions has of
// it (exception_index.h): its pages stay in the page cache, and what is used of it from now on is
// locked again. Nothing happens where the limit does not allow to lock all of it.
void let_go_of_seldom_used();

}  // namespace ddprun

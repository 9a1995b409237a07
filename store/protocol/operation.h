// The operations of PyTorch's TCPStore, and the dialects of its wire format. Plain values; the
// bytes are in protocol.h.
#pragma once

#include <cstdint>

namespace ddprun::store {

// The magic number in the greeting (VALIDATE) of torch 2.2 and later.
inline constexpr std::uint32_t kGreetingMagic = 0x3C85F7CE;

// Which number stands for which operation. torch 2.2 and later begin with a greeting. The two older
// dialects differ only in codes 7 and 8, and can only be told apart by how the bytes arrive. 1.13
// sends the code in a packet of its own, and it waits after the key of a code 8 (DELETE_KEY). 2.1
// sends a request in one piece, and its code 8 (APPEND) goes on after the key.
enum class Dialect : std::uint8_t {
    unknown,     // nothing received yet
    legacy,      // 1.13 or 2.1, not decided yet; both are served
    torch_1_13,  // 1.13 and 2.0
    torch_2_1,   // 2.1
    torch_2_2,   // 2.2 and later
};

// In the order of the codes of torch 2.2 and later. watch_key exists in 1.13 and 2.0 only. The
// arrow shows the answer.
enum class Operation : std::uint8_t {
    validate,     // no reply
    set,          // no reply
    compare_set,  // -> text
    get,          // -> text
    add,          // -> i64
    check,        // -> u8 Status::ready or not_ready
    wait,         // -> u8 Status::stop_waiting, when all keys exist
    num_keys,     // -> i64
    delete_key,   // -> i64, 0 or 1
    append,       // no reply
    multi_get,    // -> one text a key, no count
    multi_set,    // no reply
    cancel_wait,  // -> u8 Status::wait_canceled, even without a wait
    ping,         // -> u32, the nonce
    queue_push,   // no reply
    queue_pop,    // -> i64 length before, and if it is > 0 a text
    queue_len,    // -> i64
    list_keys,    // -> i64 n, n texts
    barrier,      // -> u8 Status::stop_waiting, when all have arrived
    watch_key,    // -> u8 kWatchRegistered, and later a record for each change
};

// The name as it stands in logs: "COMPARE_SET".
const char* to_string(Operation operation);

}  // namespace ddprun::store

#pragma once
// A slower link than the one beneath: each rank's sends are one serial queue of the given bandwidth, and a message
// arrives `latency` after it has left, which is when the send finishes. The bytes themselves travel at once; an empty
// message follows when the link would have delivered them, and the receive finishes with both. So the real transfer
// hides behind the emulated one, nothing waits in a busy loop, and no clock is shared between ranks. Doubles the number
// of messages and halves the number of tags.
#include <memory>
#include <string_view>

#include "annulet/comm/transport.hpp"

namespace annulet::comm {

struct EmulatedLink {
  Seconds latency{0};     // alpha
  ByteRate bandwidth{0};  // 1 / beta
};

// Reads "alpha=1ms,bandwidth=125MB/s"; both parts are needed. Throws InputError.
EmulatedLink parse_emulated_link(std::string_view text);

std::unique_ptr<Transport> emulate(std::unique_ptr<Transport> beneath, EmulatedLink link);

}  // namespace annulet::comm

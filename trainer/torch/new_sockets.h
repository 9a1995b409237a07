// NewSockets: the connections that a library has opened, so that they can be cut from outside.
// libtorch's Gloo does not hand out its sockets, and has no call that ends a running collective.
//
// The object is made before the library connects; find() afterwards duplicates the internet sockets
// that are new in this process. Any thread may call cut().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ddprun::trainer {

class NewSockets {
  public:
    NewSockets();
    ~NewSockets();
    NewSockets(const NewSockets&) = delete;
    NewSockets& operator=(const NewSockets&) = delete;

    // Takes the connections that were opened since this object was made, except those to
    // `except_port` (the store's, to which another thread may have connected meanwhile). Returns
    // how many they are.
    std::size_t find(std::uint16_t except_port);

    // The near ends of these connections, as bytes for links_to().
    std::string ends() const;
    // The descriptors of those whose far end is among another rank's ends().
    std::vector<int> links_to(const std::string& ends) const;

    // Shuts all of them down, for both sides. Gloo sees that its connections have ended.
    void cut() const;

  private:
    // A connection of this process, known by its two ends.
    struct Link {
        int fd = -1;
        std::string local, peer;
        std::uint16_t peer_port = 0;
    };
    static std::vector<Link> connected();

    std::vector<Link> links_;  // before find(): what was there already; then: duplicates
    bool found_ = false;
};

}  // namespace ddprun::trainer

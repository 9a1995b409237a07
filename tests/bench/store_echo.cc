// The least that a server on Asio can do: it sends back what it gets. One thread; for each
// connection one read, then one write. store.py measures with it how much the worker store costs on
// top of Asio.
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <cstdlib>
#include <memory>

using boost::asio::ip::tcp;

class Echo : public std::enable_shared_from_this<Echo> {
  public:
    explicit Echo(tcp::socket socket) : socket_(std::move(socket)) {
        // As the store does. Otherwise the kernel would hold back small answers.
        socket_.set_option(tcp::no_delay(true));
    }

    void read() {
        socket_.async_read_some(boost::asio::buffer(bytes_),
                                [self = shared_from_this()](auto error, std::size_t count) {
                                    if (!error) self->write(count);
                                });
    }

  private:
    void write(std::size_t count) {
        boost::asio::async_write(socket_, boost::asio::buffer(bytes_, count),
                                 [self = shared_from_this()](auto error, std::size_t) {
                                     if (!error) self->read();
                                 });
    }

    tcp::socket socket_;
    // A request of the benchmark has 44 bytes, so each read gets a whole one.
    std::array<char, 4096> bytes_;
};

void accept(tcp::acceptor& acceptor) {
    acceptor.async_accept([&](auto error, tcp::socket socket) {
        if (!error) std::make_shared<Echo>(std::move(socket))->read();
        accept(acceptor);
    });
}

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    boost::asio::io_context loop(1);
    const auto port = static_cast<std::uint16_t>(std::atoi(argv[1]));
    tcp::acceptor acceptor(loop, {boost::asio::ip::address_v4::loopback(), port});
    accept(acceptor);
    loop.run();
}

// gRPC without xDS, which nobody uses here and which is a fifth of gRPC's code.
//
// gRPC registers its large extras (xDS, Google's resolvers) in one function of a file of its own
// (src/core/plugin_registry/grpc_plugin_registry_extra.cc). Its build has a second form of that
// file that registers nothing (…_noextra.cc), for programs that want to be small. Debian's archive
// has only the first. A function of the same name in the program comes before the one in the
// archive, so the linker leaves that file out, and all that only it needs.

namespace grpc_core {

class CoreConfiguration {
   public:
    class Builder;
};

void RegisterExtraFilters(CoreConfiguration::Builder* builder);
void RegisterExtraFilters(CoreConfiguration::Builder* /*builder*/) {}

}  // namespace grpc_core

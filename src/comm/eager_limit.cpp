#include "annulet/comm/eager_limit.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <optional>

namespace annulet::comm {
namespace {

constexpr std::int64_t kHeader = 64;  // of ob1, rounded up
constexpr std::int64_t kSharedMemory = 4096, kTcp = 65536;
constexpr const char* kSharedMemoryName = "shared memory";

// MPI_T for the life of this object.
class Tools {
 public:
  Tools() {
    int provided = 0;
    usable_ = MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS;
  }
  ~Tools() {
    if (usable_) MPI_T_finalize();
  }
  Tools(const Tools&) = delete;
  Tools& operator=(const Tools&) = delete;

  // A variable of one integer of any width; nothing if there is none of that name.
  std::optional<std::int64_t> integer(const char* name) const {
    std::optional<std::int64_t> result;
    read(name, [&](MPI_Datatype type, int count, MPI_T_cvar_handle handle) {
      if (count != 1) return;
      if (type == MPI_UNSIGNED_LONG) result = value<unsigned long>(handle);
      if (type == MPI_UNSIGNED_LONG_LONG) result = value<unsigned long long>(handle);
      if (type == MPI_UNSIGNED) result = value<unsigned>(handle);
      if (type == MPI_INT) result = value<int>(handle);
    });
    return result;
  }

  std::string text(const char* name) const {
    std::string result;
    read(name, [&](MPI_Datatype type, int count, MPI_T_cvar_handle handle) {
      if (type != MPI_CHAR || count <= 0) return;
      std::string buffer(static_cast<std::size_t>(count) + 1, '\0');
      if (MPI_T_cvar_read(handle, buffer.data()) == MPI_SUCCESS) result = buffer.c_str();
    });
    return result;
  }

 private:
  template <class Value>
  static std::optional<std::int64_t> value(MPI_T_cvar_handle handle) {
    Value value{};
    if (MPI_T_cvar_read(handle, &value) != MPI_SUCCESS) return std::nullopt;
    return static_cast<std::int64_t>(value);
  }

  template <class Reader>
  void read(const char* name, Reader reader) const {
    int index = 0;
    if (!usable_ || MPI_T_cvar_get_index(name, &index) != MPI_SUCCESS) return;
    std::array<char, 256> text{};
    int length = static_cast<int>(text.size()), verbosity = 0, description = 0, bind = 0, scope = 0;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_T_enum meaning{};
    if (MPI_T_cvar_get_info(index, text.data(), &length, &verbosity, &type, &meaning, nullptr, &description, &bind,
                            &scope) != MPI_SUCCESS) {
      return;
    }
    MPI_T_cvar_handle handle{};
    int count = 0;
    if (MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count) != MPI_SUCCESS) return;
    reader(type, count, handle);
    MPI_T_cvar_handle_free(&handle);
  }

  bool usable_ = false;
};

// `list` is a choice of Open MPI's components: "vader,self", "^tcp" for all but those, empty for all.
bool may_use(std::string_view list, std::string_view name) {
  const bool excludes = list.starts_with('^');
  const std::string names = fmt::format(",{},", list.substr(excludes ? 1 : 0));
  const bool listed = names.find(fmt::format(",{},", name)) != std::string::npos;
  return list.empty() || listed != excludes;
}

EagerLimit limit(std::int64_t total, const char* transport, std::string origin) {
  return {Bytes(std::max<std::int64_t>(total - kHeader, 4)), transport, std::move(origin)};
}

EagerLimit assumed_limit(std::int64_t total, const char* transport) {
  return limit(total, transport, fmt::format("{} assumed, as Open MPI has it", total));
}

EagerLimit limit_of(const Tools& tools, const char* variable, std::int64_t assumed, const char* transport) {
  const auto found = tools.integer(variable);
  return found ? limit(*found, transport, fmt::format("{} = {}", variable, *found)) : assumed_limit(assumed, transport);
}

EagerLimits look_for_limits() {
  const Tools tools;
  EagerLimits limits{limit_of(tools, "btl_vader_eager_limit", kSharedMemory, kSharedMemoryName),
                     limit_of(tools, "btl_tcp_eager_limit", kTcp, "TCP")};
  const std::string transports = tools.text("btl");
  if (may_use(transports, "tcp") && !may_use(transports, "vader")) limits.inside = limits.between;
  return limits;
}

}  // namespace

EagerLimit assumed_shared_memory_limit() { return assumed_limit(kSharedMemory, kSharedMemoryName); }

const EagerLimits& find_eager_limits() {
  static const EagerLimits limits = look_for_limits();  // MPI_T takes tenths of a second to start
  return limits;
}

}  // namespace annulet::comm

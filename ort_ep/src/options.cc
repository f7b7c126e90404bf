#include "options.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <thread>

#include "api.h"

namespace retouch {
namespace {

constexpr const char* kPrefix = "ep.retouchexecutionprovider.";
constexpr long kMostThreads = 1024;

/// An entry of a session's configuration, or what it is if there is none.
std::string entry(const OrtSessionOptions* session, const char* name, const std::string& otherwise) {
  const std::string key = std::string(kPrefix) + name;
  int there = 0;
  check(runtime().api->HasSessionConfigEntry(session, key.c_str(), &there));
  if (there == 0) return otherwise;
  size_t size = 0;
  check(runtime().api->GetSessionConfigEntry(session, key.c_str(), nullptr, &size));
  std::string text(size, '\0');
  check(runtime().api->GetSessionConfigEntry(session, key.c_str(), text.data(), &size));
  text.resize(text.find('\0'));
  return text;
}

long number(const OrtSessionOptions* session, const char* name, long otherwise, long most) {
  const std::string text = entry(session, name, std::to_string(otherwise));
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || value < 0 || value > most) {
    throw Error(std::string("RetouchExecutionProvider: expected the option ") + name + " to be a number from 0 to " + std::to_string(most) + ", got '" + text + "'");
  }
  return value;
}

}  // namespace

size_t all_threads() noexcept {
  static const size_t threads = std::max<size_t>(1, std::thread::hardware_concurrency());
  return threads;
}

Options Options::of(const OrtSessionOptions* session) {
  const size_t asked = static_cast<size_t>(number(session, "threads", 0, kMostThreads));
  return {number(session, "in_place", 1, 1) != 0, asked == 0 ? all_threads() : asked,
          weight_storage(entry(session, "weights", "float32")), number(session, "trace", 0, 1) != 0};
}

}  // namespace retouch

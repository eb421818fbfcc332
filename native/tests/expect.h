// Shared by the host-only tests: each expectation is printed, and main() returns whether any
// failed.
#pragma once

#include <cstdio>

inline int failures = 0;

inline void expect(bool ok, const char* what) {
  std::printf("%s %s\n", ok ? "ok  " : "FAIL", what);
  failures += !ok;
}

inline int failed() {
  if (failures) std::printf("%d failures\n", failures);
  return failures != 0;
}

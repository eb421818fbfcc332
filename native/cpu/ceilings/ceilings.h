// What the machine can do at most, by kernels that do nothing else: what a roofline is drawn with.
// Each returns or leaves what tells that all of its work was done. All threads, of torch's count.
#pragma once

#include <cstdint>

namespace gnnbench {

// Bits of the registers that are used; 128 are what any machine has.
enum class Vectors { k128, k256, k512 };

bool has_vectors(Vectors vectors);
Vectors widest_vectors();

// Lines of 64 bytes from one place to another, both at a line's beginning, past the caches.
void ceiling_copy(const char* from, int64_t lines, char* to, Vectors vectors = widest_vectors());

// The sum, modulo 2^32, of `lines` times 16 words, each thread's own share of them read `passes`
// times in a row. `words` is at a line's beginning.
uint32_t ceiling_read(const uint32_t* words, int64_t lines, int64_t passes,
                      Vectors vectors = widest_vectors());

// The sum, modulo 2^32, of the rows ids[0..n) of a table of rows of `width` words. Rows are asked
// for ahead of their use, as a gather does. The first wrong id's position goes to `wrong`, or -1.
uint32_t ceiling_rows(const uint32_t* words, int64_t rows, int64_t width, const int64_t* ids,
                      int64_t n, int64_t* wrong);

// Chains of float32 multiply-adds x = x * 1 + 1 in every lane of as many registers as hide their
// latency, `steps` (at most 2^23: sums stay exact) long. Returns the sum over all lanes of all
// threads: as many multiply-adds as were done.
double ceiling_fma(int64_t steps, Vectors vectors = widest_vectors());

}  // namespace gnnbench

/* SHA-256 (FIPS 180-4) and HMAC (RFC 2104), small rather than fast. */
#include "modurob/bus.h"

#include <string.h>

static const uint32_t ROUND[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotated(uint32_t x, unsigned n) { return (x >> n) | (x << (32U - n)); }

static void add_block(uint32_t state[8], const uint8_t block[64]) {
  uint32_t w[64];
  for (size_t k = 0; k < 16; k++)
    w[k] = (uint32_t)block[4 * k] << 24 | (uint32_t)block[4 * k + 1] << 16 |
           (uint32_t)block[4 * k + 2] << 8 | (uint32_t)block[4 * k + 3];
  for (size_t k = 16; k < 64; k++) {
    uint32_t a = w[k - 15], b = w[k - 2];
    w[k] = w[k - 16] + (rotated(a, 7) ^ rotated(a, 18) ^ (a >> 3)) + w[k - 7] +
           (rotated(b, 17) ^ rotated(b, 19) ^ (b >> 10));
  }
  uint32_t s[8];
  memcpy(s, state, sizeof s);
  for (size_t k = 0; k < 64; k++) {
    uint32_t sum = s[7] + (rotated(s[4], 6) ^ rotated(s[4], 11) ^ rotated(s[4], 25)) +
                   ((s[4] & s[5]) ^ (~s[4] & s[6])) + ROUND[k] + w[k];
    uint32_t more = (rotated(s[0], 2) ^ rotated(s[0], 13) ^ rotated(s[0], 22)) +
                    ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
    memmove(s + 1, s, 7 * sizeof *s);
    s[4] += sum;
    s[0] = sum + more;
  }
  for (size_t k = 0; k < 8; k++) state[k] += s[k];
}

void mr_sha256_start(mr_sha256 *hash) {
  static const uint32_t FIRST[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  memcpy(hash->state, FIRST, sizeof FIRST);
  hash->size = 0;
}

void mr_sha256_add(mr_sha256 *hash, const uint8_t *data, size_t size) {
  for (size_t k = 0; k < size; k++) {
    size_t at = (size_t)(hash->size++ % 64);
    hash->block[at] = data[k];
    if (at == 63) add_block(hash->state, hash->block);
  }
}

void mr_sha256_end(mr_sha256 *hash, uint8_t digest[32]) {
  static const uint8_t ONE = 0x80, ZERO = 0;
  uint64_t bits = 8 * hash->size;
  uint8_t length[8];
  mr_sha256_add(hash, &ONE, 1);
  while (hash->size % 64 != 56) mr_sha256_add(hash, &ZERO, 1);
  for (unsigned k = 0; k < 8; k++) length[k] = (uint8_t)(bits >> (56 - 8 * k));
  mr_sha256_add(hash, length, sizeof length);
  for (unsigned k = 0; k < 32; k++) digest[k] = (uint8_t)(hash->state[k / 4] >> (24 - 8 * (k % 4)));
}

void mr_hmac_sha256(const uint8_t *key, size_t key_size, const uint8_t *first, size_t first_size,
                    const uint8_t *second, size_t second_size, uint8_t digest[32]) {
  uint8_t block[64] = {0};
  mr_sha256 hash;
  if (key_size > sizeof block) {
    mr_sha256_start(&hash);
    mr_sha256_add(&hash, key, key_size);
    mr_sha256_end(&hash, block);
  } else {
    memcpy(block, key, key_size);
  }
  for (size_t k = 0; k < sizeof block; k++) block[k] ^= 0x36;
  mr_sha256_start(&hash);
  mr_sha256_add(&hash, block, sizeof block);
  mr_sha256_add(&hash, first, first_size);
  mr_sha256_add(&hash, second, second_size);
  mr_sha256_end(&hash, digest);
  for (size_t k = 0; k < sizeof block; k++) block[k] ^= 0x36 ^ 0x5c;
  mr_sha256_start(&hash);
  mr_sha256_add(&hash, block, sizeof block);
  mr_sha256_add(&hash, digest, 32);
  mr_sha256_end(&hash, digest);
}

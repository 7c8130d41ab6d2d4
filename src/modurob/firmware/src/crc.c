/* CRC-32 by half bytes: a table of 64 bytes. */
#include "modurob/crc.h"

uint32_t mr_crc32(uint32_t crc, const uint8_t *data, size_t size) {
  static const uint32_t NIBBLE[16] = {
      0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
      0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
      0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
  crc = ~crc;
  for (size_t k = 0; k < size; k++) {
    crc ^= data[k];
    crc = (crc >> 4) ^ NIBBLE[crc & 15];
    crc = (crc >> 4) ^ NIBBLE[crc & 15];
  }
  return ~crc;
}
